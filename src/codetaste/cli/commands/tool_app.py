"""Arguments of ``codetaste tool …``."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import Annotated

import anyio
from cyclopts import App, Parameter

from codetaste.console import run_command
from codetaste.rules.registration import Direction

_JSON = Parameter(name="--json", negative=())

tool_app = App(name="tool", help="Try the rule agent's tools on a real instance, without any model.")


@tool_app.command(name="list")
def list_tools(*, json_: Annotated[bool, _JSON] = False) -> int:
    """List the rule agent's own tools.

    Args:
        json_: Print the result as JSON.
    """
    from codetaste.cli.commands import tool as trying  # noqa: PLC0415 - only here

    return run_command(lambda: trying.print_tools(as_json=json_), as_json=json_)


@tool_app.command
def schema(name: str, /, *, json_: Annotated[bool, _JSON] = False) -> int:
    """Print a tool's name, description and JSON schema, as a model sees them.

    Args:
        name: A tool of the rule agent, an import path, or file.py:name.
        json_: Print errors as JSON, too; the schema is JSON in any case.
    """
    from codetaste.cli.commands import tool as trying  # noqa: PLC0415 - only here

    return run_command(lambda: trying.print_schema(name), as_json=json_)


@tool_app.command
def call(
    name: str,
    /,
    *,
    instance: str,
    args: str = "{}",
    benchmark: str = "quickstart",
    repos: Path | None = None,
    direction: Direction = Direction.ADDITIVE,
    json_: Annotated[bool, _JSON] = False,
) -> int:
    """Call a tool on a real instance, without any model, and print its answer.

    Args:
        name: A tool of the rule agent, an import path, or file.py:name.
        instance: The instance's id, or a glob that matches exactly one.
        args: The tool's arguments as a JSON object.
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO.
        direction: Direction of the discovery pass that the tool runs in.
        json_: Print the answer and the facts as JSON.
    """
    from codetaste.cli.commands import tool as trying  # noqa: PLC0415 - only here

    trial = trying.ToolCallArguments(name, instance, args, benchmark, repos, direction, as_json=json_)
    return run_command(lambda: anyio.run(trying.call_tool, trial), as_json=json_)
