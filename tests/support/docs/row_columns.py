"""The tables of ``docs/rows.md``: outcomes and columns of rows, made from the docstrings of their classes.

``.venv/bin/python tests/support/docs/row_columns.py`` rewrites them; the prose before the first one stays.
"""

from __future__ import annotations

import ast
import inspect
import re
import textwrap
from pathlib import Path

import docstring_parser

from codetaste.results.load import ROW_KINDS
from codetaste.results.outcome import OutcomeFacet
from codetaste.results.rows.schema import RowColumn, columns_of

PAGE = Path(__file__).resolve().parents[3] / "docs" / "rows.md"
FIRST_HEADING = "## Outcomes"
TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def render_page(page: str) -> str:
    """Return the page with its tables renewed."""
    parts = [page.partition(FIRST_HEADING)[0].rstrip(), _outcomes()]
    parts += [_columns(name, kind) for name, kind in ROW_KINDS.items()]
    return "\n\n".join(parts) + "\n"


def _outcomes() -> str:
    lines = [FIRST_HEADING, "", "| value | meaning |", "| --- | --- |"]
    body = ast.parse(textwrap.dedent(inspect.getsource(OutcomeFacet))).body[0]
    assert isinstance(body, ast.ClassDef)
    texts: dict[str, str] = {}
    for node, after in zip(body.body, [*body.body[1:], ast.Pass()], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            described = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            texts[node.targets[0].id] = _one_line(ast.literal_eval(after.value)) if described else ""
    lines += [
        f"| `{each.value}` | {texts[each.name] or f'{each.label}.'.capitalize()} |" for each in OutcomeFacet
    ]
    return "\n".join(lines)


def _columns(name: str, kind: type) -> str:
    documented = docstring_parser.parse(inspect.getdoc(kind) or "")
    texts = {each.arg_name: _one_line(each.description or "") for each in documented.params}
    rows = [f"| `{each.name}` | {_type(each)} | {texts[each.name]} |" for each in columns_of(kind)]
    return "\n".join([f"## `{name}`", "", "| column | type | content |", "| --- | --- | --- |", *rows])


def _type(column: RowColumn) -> str:
    if column.several:
        return "several texts"
    return TYPES[column.type] + (", may be missing" if column.nullable else "")


def _one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), "utf-8")
