"""``codetaste tool``: list and describe tools, and call them on a real instance without a model."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from codetaste.agent.tool import load_tools
from codetaste.cli.arguments import open_scan, resolve_benchmark, resolve_instance
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.core.text import did_you_mean
from codetaste.errors import CodetasteError, ConfigError, ToolError
from codetaste.flows.discover.jobs import open_rule_context
from codetaste.flows.discover.plan import DEFAULT_TOOLS
from codetaste.rules.registration import Direction
from codetaste.run.services import open_rule_tools
from codetaste.sandbox.config import SandboxConfig

if TYPE_CHECKING:
    from codetaste.agent.tool import Tool


tool = App(name="tool")


@tool.command(name="list")
@command
def print_tools(*, json_: AsJson = False) -> int:
    """List the rule agent's own tools.

    Args:
        json_: Print the result as JSON.
    """
    tools = load_tools(DEFAULT_TOOLS, base_dir=Path())
    if json_:
        print_result(json_document({"tools": [_tool_to_json(each) for each in tools]}))
        return 0
    for each, path in zip(tools, DEFAULT_TOOLS, strict=True):
        print_result(f"{each.spec.name:<14} {each.spec.description.splitlines()[0]}  ({path})")
    return 0


@tool.command
@command
def schema(name: str, /, *, json_: AsJson = False) -> int:  # noqa: ARG001 - ``command`` reads it
    """Print a tool's name, description and JSON schema, as a model sees them.

    Args:
        name: A tool of the rule agent, an import path, or file.py:name.
        json_: Print errors as JSON, too; the schema is JSON in any case.

    Raises:
        ConfigError: the tool does not exist.
    """
    print_result(json_document(_tool_to_json(_find_tool(name))))
    return 0


@tool.command
@command
async def call(
    name: str,
    /,
    *,
    instance: str,
    args: str = "{}",
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    direction: Direction = Direction.ADDITIVE,
    json_: AsJson = False,
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

    Raises:
        ToolError: the tool refuses.
        ConfigError: the tool or instance does not exist, or the arguments are invalid.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
    """
    called, arguments = _find_tool(name), _parse_arguments(args)
    opened = resolve_benchmark(benchmark, repos)
    chosen = resolve_instance(opened, instance)
    services = await open_rule_tools(opened, await open_scan(opened), SandboxConfig())
    context = await open_rule_context(chosen, direction, services, notify)
    try:
        answer = await called.call(context, arguments)
    except ToolError as error:
        raise ToolError(f"the tool refuses: {error}") from error
    except CodetasteError:
        raise
    except (Exception, SystemExit) as error:
        frames = traceback.extract_tb(error.__traceback__)
        origin = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
        message = f"the tool failed: {type(error).__name__}: {error}{origin}"
        raise CodetasteError(message) from error
    facts = context.facts.take_pending()
    data = {"answer": answer.text, "finish": answer.finish, "facts": facts}
    print_result(json_document(data) if json_ else answer.text)
    return 0


def _find_tool(name: str) -> Tool:
    """Return the tool ``name``: one of the rule agent's, an import path, or ``file.py:name``.

    Raises:
        ConfigError: the tool does not exist; the closest name is suggested.
    """
    own = {path.rpartition(":")[2]: path for path in DEFAULT_TOOLS}
    if ":" not in name and name not in own:
        raise ConfigError(
            f"there is no tool {name!r}{did_you_mean(name, list(own))}; name others module:name"
        )
    (found,) = load_tools([own.get(name, name)], base_dir=Path())
    return found


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ConfigError('--args must be a JSON object, such as \'{"command": "ls"}\'')
    return arguments


def _tool_to_json(described: Tool) -> dict[str, Any]:
    spec = described.spec
    return {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
