"""The table of all folders and modules in ``docs/architecture.md``, made from the package.

``.venv/bin/python tests/support/docs/module_table.py`` rewrites it. The text of a folder is the first
paragraph of its ``__init__.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[3]
PACKAGE = CHECKOUT / "src" / "codetaste"
PAGE = CHECKOUT / "docs" / "architecture.md"
HEAD = "| folder | content | modules |\n| --- | --- | --- |\n"


def render_rows() -> Iterator[str]:
    for init in sorted(PACKAGE.rglob("__init__.py")):
        folder = init.parent.relative_to(PACKAGE).as_posix()
        text = (ast.get_docstring(ast.parse(init.read_text("utf-8"))) or "").split("\n\n")[0]
        about = " ".join(text.replace("``", "`").split())
        modules = ", ".join(f"`{path.stem}`" for path in sorted(init.parent.glob("*.py")) if path != init)
        if modules:
            yield f"| {'top' if folder == '.' else f'`{folder}/`'} | {about} | {modules} |\n"


def render_page(text: str) -> str:
    """Return ``text`` with its table replaced by the current one."""
    before, _, rest = text.partition(HEAD)
    after = re.sub(r"\A(\|.*\n)*", "", rest)
    return before + HEAD + "".join(render_rows()) + after


if __name__ == "__main__":
    PAGE.write_text(render_page(PAGE.read_text("utf-8")), "utf-8")
