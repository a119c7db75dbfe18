"""A tool of one's own for the rule agent: who imports a module?"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.agent.tool import tool
from codetaste.errors import ToolError

if TYPE_CHECKING:
    from codetaste.agent.rule_tools import RuleContext


@tool
async def importers(context: RuleContext, module: str, limit: int = 20) -> str:
    """List the Python files of the base codebase that import a module.

    Args:
        context: What the tools of a pass work on.
        module: The module's dotted name, such as "pluggy.hooks".
        limit: How many files to name at most.
    """
    if not re.fullmatch(r"[\w.]+", module):
        raise ToolError(f"{module!r} is not a module's name; write it with dots, such as pluggy.hooks")
    pattern = rf"^\s*(from {re.escape(module)} import|import {re.escape(module)}\b)"
    done = await context.shell.run(["rg", "--count", "--glob", "*.py", pattern])
    files = sorted(done.stdout.decode("utf-8", "replace").splitlines())
    context.facts.add("module", module)
    before = len(context.facts.of_kind("module")) - 1
    shown = "\n".join(files[:limit]) or "none"
    return f"{len(files)} files import {module} (file:lines; {before} modules asked for before):\n{shown}"
