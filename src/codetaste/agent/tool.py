"""Tools that a model can call: async functions, described by their signature and docstring.

::

    @tool
    async def count_lines(context: RuleContext, path: str, limit: int = 100) -> str:
        ...

The docstring's text becomes the tool's description, its ``Args:`` section describes the parameters. The first
parameter is the agent's context and is hidden from the model; the others become the JSON schema.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_type_hints, overload

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from codetaste.core.imports import load_object
from codetaste.core.text import did_you_mean
from codetaste.errors import ConfigError, ToolError
from codetaste.llm.messages import ToolSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

OUTPUT_LIMIT = 24_000
"""Default limit of one answer, characters; longer answers are truncated for the model."""


class BadArguments(ToolError):
    """The arguments do not fit the tool's schema; the tool was not run."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """Answer of a tool to the model.

    ``finish`` ends the loop after it; ``repeats`` says that the call only repeats earlier ones.
    """

    text: str
    finish: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model can call. ``digest`` changes when the file of the function changes.

    ``replay_on_resume``: calls change something that is lost with the process (a sandbox), so recorded calls
    are repeated when a loop is resumed; the recorded answers stay valid.
    """

    spec: ToolSpec
    function: Callable[..., Awaitable[str | ToolAnswer]]
    arguments: type[BaseModel]
    output_limit: int
    digest: str
    replay_on_resume: bool = False

    async def call(self, context: Any, arguments: Mapping[str, Any]) -> ToolAnswer:  # noqa: ANN401 - the agent's own
        """Check ``arguments`` against the schema, run the function, and truncate its answer.

        Arguments that the tool does not have are left out, and the answer says so.

        Raises:
            BadArguments: the arguments do not fit; the message tells the model why.
            Exception: any error of the function.
        """
        known = self.arguments.model_fields
        unknown = ", ".join(repr(name) for name in arguments if name not in known)
        ignored = f"[ignored: {self.spec.name} has no argument {unknown}]" if unknown else ""
        try:
            checked = self.arguments.model_validate(
                {name: arguments[name] for name in arguments if name in known}
            )
        except ValidationError as error:
            faults = "; ".join(
                f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
                for fault in error.errors()
            )
            expected = ", ".join(self.spec.parameters.get("properties", {})) or "none"
            raise BadArguments(
                f"bad arguments for {self.spec.name}: {faults} (arguments: {expected}) {ignored}".rstrip()
            ) from None
        values = {name: getattr(checked, name) for name in known}

        answer = await self.function(context, **values)
        if isinstance(answer, str):
            answer = ToolAnswer(answer)
        if not (isinstance(answer, ToolAnswer) and isinstance(answer.text, str)):
            raise TypeError(
                f"it returned {type(answer).__name__}; a tool returns text or a ToolAnswer with text"
            )
        text = f"{ignored}\n{answer.text}" if ignored else answer.text
        return replace(answer, text=truncate(text, self.output_limit))


@overload
def tool(function: Callable[..., Awaitable[str | ToolAnswer]], /) -> Tool: ...
@overload
def tool(
    *, output_limit: int = OUTPUT_LIMIT, replay_on_resume: bool = False
) -> Callable[[Callable[..., Awaitable[str | ToolAnswer]]], Tool]: ...
def tool(
    function: Callable[..., Awaitable[str | ToolAnswer]] | None = None,
    /,
    *,
    output_limit: int = OUTPUT_LIMIT,
    replay_on_resume: bool = False,
) -> Tool | Callable[[Callable[..., Awaitable[str | ToolAnswer]]], Tool]:
    """Make a tool of an async function; ``output_limit`` in characters, ``replay_on_resume`` as in ``Tool``.

    Raises:
        TypeError: signature or docstring is not sufficient; the message says what is missing.
    """
    if function is not None:
        return _make(function, output_limit, replay_on_resume=replay_on_resume)
    return lambda decorated: _make(decorated, output_limit, replay_on_resume=replay_on_resume)


def load_tools(paths: Sequence[str], *, base_dir: Path) -> tuple[Tool, ...]:
    """Import the tools that a config names; file paths are relative to ``base_dir``.

    Raises:
        ConfigError: paths that name no tool, or names that two tools share; all are listed.
    """
    problems: list[str] = []
    tools: dict[str, Tool] = {}
    for path in paths:
        try:
            found = load_object(path, base_dir=base_dir)
        except ConfigError as error:
            problems.extend(error.problems)
            continue
        if not isinstance(found, Tool):
            problems.append(
                f"{path} is not a tool: decorate the async function with @codetaste.agent.tool.tool"
            )
        elif found.spec.name in tools:
            problems.append(f"{path}: there is already a tool named {found.spec.name!r}")
        else:
            tools[found.spec.name] = found
    if problems:
        raise ConfigError(*problems)
    return tuple(tools.values())


def truncate(text: str, limit: int) -> str:
    """Shorten ``text`` to about ``limit`` characters: both ends, and a note of how much is left out."""
    if len(text) <= limit:
        return text
    head, tail = limit * 2 // 3, limit // 3
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out} characters left out …]\n{text[len(text) - tail :]}"


def call_in_text(text: str, tools: Sequence[Tool]) -> str:
    """Return the beginning of what looks like a tool call in the text of a reply, "" if nothing does."""
    names = "|".join(re.escape(tool.spec.name) for tool in tools)
    found = re.search(
        r"<[|\uff5c]?(antml:)?(invoke|(tool|function)([_\u2581 ]?(call|use)s?)?)\b|\[TOOL_CALLS?\]"
        rf"|\"(name|tool|tool_name|function|action)\"\s*:\s*\"(functions\.)?({names})\"|to=functions\."
        rf"|^[ \t`*]*(functions\.|print\()?({names})\(|^\W*Action:\s*({names})\b",
        text,
        re.MULTILINE,
    )
    return text[found.start() :].partition("\n")[0].strip()[:80] if found else ""


def _make(
    function: Callable[..., Awaitable[str | ToolAnswer]], output_limit: int, *, replay_on_resume: bool
) -> Tool:
    from docstring_parser import DocstringStyle, ParseError, parse  # noqa: PLC0415 - heavy

    name = getattr(function, "__name__", "")
    if not inspect.iscoroutinefunction(function):
        raise TypeError(f"tool {name}: write it as 'async def'")
    try:
        docstring = parse(inspect.getdoc(function) or "", style=DocstringStyle.GOOGLE)
    except ParseError as error:
        raise TypeError(f"tool {name}: its docstring cannot be read: {error}") from None
    if not docstring.short_description:
        raise TypeError(f"tool {name}: its docstring must tell the model what it does")
    described = {parameter.arg_name: parameter.description or "" for parameter in docstring.params}
    arguments = _arguments_model(function, described)
    spec = ToolSpec(
        name=name,
        description="\n\n".join(filter(None, [docstring.short_description, docstring.long_description])),
        parameters={**_without_titles(arguments.model_json_schema()), "type": "object"},
    )
    path = Path(inspect.getfile(function))
    digest = sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return Tool(spec, function, arguments, output_limit, digest, replay_on_resume)


def _arguments_model(function: Callable[..., Any], described: Mapping[str, str]) -> type[BaseModel]:
    """Return a pydantic model of all parameters except the first, the agent's context."""
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or not _is_context(parameters[0]):
        found = f", not {str(parameters[0])!r}" if parameters else ""
        raise TypeError(f"tool {function.__name__}: its first parameter must be the agent's context{found}")
    shown = parameters[1:]
    names = [parameter.name for parameter in parameters]
    for name in described:
        if name not in names:
            hint = did_you_mean(name, names)
            raise TypeError(f"tool {function.__name__}: 'Args:' has {name!r}, which is no parameter{hint}")
    for parameter in shown:
        if parameter.name.startswith("_") or hasattr(BaseModel, parameter.name):
            raise TypeError(
                f"tool {function.__name__}: rename parameter {parameter.name!r}: names that begin with '_' "
                "or that pydantic's models have cannot be those of arguments"
            )
        if parameter.annotation is inspect.Parameter.empty:
            raise TypeError(f"tool {function.__name__}: parameter {parameter.name!r} needs a type annotation")
        if parameter.kind in {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
            raise TypeError(f"tool {function.__name__}: a model cannot fill *{parameter.name}")
    # The context's annotation is not resolved: its type is often imported only for type checking.
    holder = type("holder", (), {"__annotations__": {each.name: each.annotation for each in shown}})
    hints = get_type_hints(holder, globalns=function.__globals__, include_extras=True)
    fields: dict[str, Any] = {
        each.name: (
            hints[each.name],
            Field(
                ... if each.default is inspect.Parameter.empty else each.default,
                description=described.get(each.name) or None,
            ),
        )
        for each in shown
    }
    return create_model(function.__name__, __config__=ConfigDict(extra="forbid"), **fields)


def _is_context(parameter: inspect.Parameter) -> bool:
    """Whether a first parameter is the agent's context, by its annotation or, without one, by its name."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return parameter.name.strip("_") in {"context", "ctx", ""}
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return name.strip("'\"").endswith(("Context", "Any", "object"))


def _without_titles(node: Any) -> Any:  # noqa: ANN401 - JSON data
    """Remove the titles that pydantic adds to a schema."""
    if isinstance(node, list):
        return [_without_titles(item) for item in node]
    if not isinstance(node, dict):
        return node
    return {
        key: {name: _without_titles(value) for name, value in item.items()}
        if key == "properties"
        else _without_titles(item)
        for key, item in node.items()
        if key != "title"
    }
