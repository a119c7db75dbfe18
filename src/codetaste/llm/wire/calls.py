"""Tool calls on the wire: what a model got wrong is found when they are read, and mended when they go back.

A provider refuses a conversation in which a call has no name, arguments that are no JSON, or the id of
another call. So such a call is told to the model as its mistake, and the next request is one that works.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedReply
from codetaste.llm.messages import ToolCall, ToolResult
from codetaste.llm.wire.http import deeper_than, read_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from codetaste.llm.messages import Request

_DEPTH = 100
"""Nesting of arguments beyond which nobody means it."""
_LONGEST_NAME = 64
_LONGEST_ID = 64
FREEFORM_INPUT = "input"
"""A freeform tool takes a text; among neutral arguments it stands under this name."""
_ERROR = "Error: "
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def call_ids(request: Request) -> frozenset[str]:
    """Return the ids of all tool calls of a conversation."""
    return frozenset(call.id for message in request.messages for call in message.tool_calls)


def distinct_ids(given: Sequence[object], taken: Collection[str]) -> list[str]:
    """Return an id for each call: the given one, or one made up where it is missing or taken."""
    seen, distinct = set(taken), []
    for number, call_id in enumerate(given, 1):
        wanted = call_id if isinstance(call_id, str) and call_id.strip() else f"call-{number}"
        unique, times = wanted, 1
        while unique in seen:
            times += 1
            unique = f"{wanted[: _LONGEST_ID - 8]}-{times}"
        seen.add(unique)
        distinct.append(unique)
    return distinct


def read_call(call_id: str, name: object, arguments: object) -> ToolCall:
    """Return a call with what is wrong with it, if anything; ``arguments`` are JSON text or data."""
    read, fault = read_arguments(arguments) if isinstance(arguments, str) else checked_arguments(arguments)
    if not isinstance(name, str) or not name.strip():
        return ToolCall(call_id, "", read, "it names no tool")
    return ToolCall(call_id, name, read, fault)


def read_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """Read the arguments of a tool call: an object, or an empty one and what is wrong with the text."""
    try:
        arguments = read_json(text) if text.strip() else {}
    except MalformedReply as error:
        return {}, f"the arguments are {error}"
    return checked_arguments(arguments)


def checked_arguments(arguments: Any) -> tuple[dict[str, Any], str | None]:  # noqa: ANN401 - JSON data
    """Return parsed arguments, or an empty object and what is wrong with them."""
    if arguments is None:
        return {}, None
    if not isinstance(arguments, dict):
        return {}, f"the arguments are {type(arguments).__name__}, not a JSON object"
    if deeper_than(arguments, _DEPTH):
        return {}, f"the arguments are nested deeper than {_DEPTH} levels"
    return arguments, None


def wire_name(name: object) -> str:
    """Return the name of a call as every provider takes it back; one that is well formed stays."""
    text = name if isinstance(name, str) else ""
    return _NOT_IN_NAMES.sub("_", text)[:_LONGEST_NAME] or "unnamed"


def wire_arguments(arguments: object) -> str:
    """Return arguments as the JSON text of an object; what was said stays as it is where it is one."""
    if not isinstance(arguments, str):
        return arguments_text(checked_arguments(arguments)[0])
    _, fault = read_arguments(arguments)
    return arguments if fault is None and arguments.lstrip().startswith("{") else "{}"


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Write arguments as JSON."""
    return json.dumps(dict(arguments), ensure_ascii=False, separators=(",", ":"))


def result_text(result: ToolResult) -> str:
    """Return what a tool answered, for protocols that cannot say beside it that it is an error."""
    return f"{_ERROR}{result.content}" if result.is_error else result.content


def result_of(call_id: str, text: str) -> ToolResult:
    """Read what ``result_text`` wrote."""
    return ToolResult(call_id, text.removeprefix(_ERROR), is_error=text.startswith(_ERROR))
