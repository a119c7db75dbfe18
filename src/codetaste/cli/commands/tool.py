"""``codetaste tool``: list and describe tools, and call them on a real instance without a model."""

from __future__ import annotations

import json
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.agent.tool import load_tools
from codetaste.cli.arguments import resolve_benchmark, resolve_instance
from codetaste.console import notify, print_result
from codetaste.core.paths import cache_dir
from codetaste.core.section import did_you_mean
from codetaste.errors import CodetasteError, ConfigError, ToolError
from codetaste.flows.discover.jobs import open_rule_context
from codetaste.flows.discover.plan import DEFAULT_TOOLS
from codetaste.rules.config import RulesConfig
from codetaste.run.services import open_rule_tools, open_scan_context
from codetaste.sandbox.config import SandboxConfig

if TYPE_CHECKING:
    from codetaste.agent.tool import Tool
    from codetaste.rules.registration import Direction


@dataclass(frozen=True, slots=True)
class ToolCallArguments:
    """Arguments of ``codetaste tool call``; ``arguments`` is the text of a JSON object."""

    tool: str
    instance: str
    arguments: str
    benchmark: str
    repos: Path | None
    direction: Direction
    as_json: bool = False


def print_tools(*, as_json: bool) -> int:
    """Print the rule agent's own tools, one per line."""
    tools = load_tools(DEFAULT_TOOLS, base_dir=Path())
    if as_json:
        print_result(json.dumps([_tool_to_json(tool) for tool in tools], indent=2))
        return 0
    for tool, path in zip(tools, DEFAULT_TOOLS, strict=True):
        print_result(f"{tool.spec.name:<14} {tool.spec.description.splitlines()[0]}  ({path})")
    return 0


def print_schema(name: str) -> int:
    """Print the description of a tool as a model receives it.

    Raises:
        ConfigError: the tool does not exist.
    """
    print_result(json.dumps(_tool_to_json(find_tool(name)), indent=2))
    return 0


def find_tool(name: str) -> Tool:
    """Return the tool ``name``: one of the rule agent's, an import path, or ``file.py:name``.

    Raises:
        ConfigError: the tool does not exist; the closest name is suggested.
    """
    own = {path.rpartition(":")[2]: path for path in DEFAULT_TOOLS}
    if ":" not in name and name not in own:
        raise ConfigError(
            f"there is no tool {name!r}{did_you_mean(name, list(own))}; name others module:name"
        )
    (tool,) = load_tools([own.get(name, name)], base_dir=Path())
    return tool


async def call_tool(call: ToolCallArguments) -> int:
    """Call the tool and print its answer; returns the exit code, 0.

    Raises:
        ToolError: the tool refuses.
        ConfigError: the tool or instance does not exist, or the arguments are invalid.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
    """
    tool = find_tool(call.tool)
    arguments = _parse_arguments(call.arguments)
    benchmark = resolve_benchmark(call.benchmark, call.repos)
    instance = resolve_instance(benchmark, call.instance)
    scan = await open_scan_context(benchmark, RulesConfig(), await to_thread.run_sync(cache_dir, notify))
    services = await open_rule_tools(benchmark, scan, SandboxConfig())
    async with open_rule_context(instance, call.direction, services, notify) as context:
        try:
            answer = await tool.call(context, arguments)
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
    if call.as_json:
        print_result(json.dumps({"answer": answer.text, "finish": answer.finish, "facts": facts}, indent=2))
    else:
        print_result(answer.text)
    return 0


def _parse_arguments(text: str) -> dict[str, Any]:
    try:
        arguments = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--args is not JSON: {error}") from None
    if not isinstance(arguments, dict):
        raise ConfigError('--args must be a JSON object, such as \'{"command": "ls"}\'')
    return arguments


def _tool_to_json(tool: Tool) -> dict[str, Any]:
    spec = tool.spec
    return {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
