"""Tool calls: errors are found when a call is decoded, and repaired when it is sent back.

A provider refuses a conversation in which a call has no name, arguments that are not JSON, or the id of
another call. So such an error is reported to the model, and the next request contains a valid call.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from codetaste.errors import MalformedReply
from codetaste.llm.messages import ToolCall, ToolResult
from codetaste.llm.wire.common.http import deeper_than, read_json

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from codetaste.llm.messages import Request

_DEPTH = 100
"""Nesting of arguments beyond which they are rejected as meaningless."""
_LONGEST_NAME = 64
_LONGEST_ID = 64
FREEFORM_INPUT = "input"
"""The argument name for the text of a freeform tool call, in neutral form."""
_ERROR = "Error: "
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")


def call_ids(request: Request) -> frozenset[str]:
    """Return the ids of all tool calls of a conversation."""
    return frozenset(call.id for message in request.messages for call in message.tool_calls)


def unique_call_ids(given: Sequence[object], taken: Collection[str]) -> list[str]:
    """Return an id for each call: the given one, or a new one if it is missing or already taken."""
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
    """Return a call with its ``fault``, if it has one; ``arguments`` are JSON text or data."""
    read, fault = read_arguments(arguments) if isinstance(arguments, str) else validate_arguments(arguments)
    if not isinstance(name, str) or not name.strip():
        return ToolCall(call_id, "", read, "it names no tool")
    return ToolCall(call_id, name, read, fault)


def read_arguments(text: str) -> tuple[dict[str, Any], str | None]:
    """Parse the arguments of a tool call; return an object and None, or an empty one and the error."""
    try:
        arguments = read_json(text) if text.strip() else {}
    except MalformedReply as error:
        return {}, f"the arguments are {error}"
    return validate_arguments(arguments)


def validate_arguments(arguments: Any) -> tuple[dict[str, Any], str | None]:  # noqa: ANN401 - JSON data
    """Return valid arguments and None, or an empty object and the error."""
    if arguments is None:
        return {}, None
    if not isinstance(arguments, dict):
        return {}, f"the arguments are {type(arguments).__name__}, not a JSON object"
    if deeper_than(arguments, _DEPTH):
        return {}, f"the arguments are nested deeper than {_DEPTH} levels"
    return arguments, None


def valid_tool_name(name: object) -> str:
    """Return the name of a call in a form that every provider accepts; a valid one is unchanged."""
    text = name if isinstance(name, str) else ""
    return _NOT_IN_NAMES.sub("_", text)[:_LONGEST_NAME] or "unnamed"


def valid_arguments_json(arguments: object) -> str:
    """Return arguments as the JSON text of an object; a text that is one is unchanged."""
    if not isinstance(arguments, str):
        return arguments_to_json(validate_arguments(arguments)[0])
    _, fault = read_arguments(arguments)
    return arguments if fault is None and arguments.lstrip().startswith("{") else "{}"


def arguments_to_json(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON text."""
    return json.dumps(dict(arguments), ensure_ascii=False, separators=(",", ":"))


def format_result_text(result: ToolResult) -> str:
    """Return the output of a tool, for protocols without a field that marks it as an error."""
    return f"{_ERROR}{result.content}" if result.is_error else result.content


def parse_result_text(call_id: str, text: str) -> ToolResult:
    """Return the result that ``format_result_text`` wrote."""
    return ToolResult(call_id, text.removeprefix(_ERROR), is_error=text.startswith(_ERROR))
