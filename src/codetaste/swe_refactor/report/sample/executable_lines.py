"""Executable lines of a method (ELOC), by its syntax."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import METHODS, parse_java, walk_nodes

if TYPE_CHECKING:
    from tree_sitter import Node

_COMMENTS = {"block_comment", "line_comment"}
_PUNCTUATION = set("(){}[];,")
_WRAPPED = b"class X {\n%s\n}\n"


def executable_lines(method: str) -> int | None:
    """Return the number of lines in the body of a method that have code.

    Blank lines, comments, and lines of brackets, commas and semicolons alone do not count; neither do the
    Javadoc, annotations and signature. A line with several statements counts once, a statement on several
    lines counts each of them. A text block counts all lines that it has text on. The paper does not say how
    it counts.

    Returns:
        The number; 0 for a method without a body, None for a text that is no method.
    """
    unit = parse_java(_WRAPPED % method.encode("utf-8", "replace"))
    found = None if unit is None else _first_method(unit.root)
    if found is None:
        return None
    body = found.child_by_field_name("body")
    return 0 if body is None else len(_code_rows(body))


def _first_method(root: Node) -> Node | None:
    """Return the outermost method that comes first."""
    return next((node for node in walk_nodes(root) if node.type in METHODS), None)


def _code_rows(body: Node) -> set[int]:
    rows: set[int] = set()
    whole = {*_COMMENTS, "string_literal"}
    for node in walk_nodes(body, lambda node: node.type not in whole):
        if node.type == "string_literal":
            lines = (node.text or b"").split(b"\n")
            rows |= {node.start_point.row + at for at, line in enumerate(lines) if line.strip()}
        elif not node.child_count and node.type not in {*_PUNCTUATION, *_COMMENTS} and node.text:
            rows.add(node.start_point.row)
    return rows
