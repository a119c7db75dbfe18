"""The parts of messages in any protocol: texts, reasoning, tool calls and their results.

Supported are messages of Anthropic's protocol, items of OpenAI's Responses, messages of Chat Completions,
messages of codetaste's own transcripts, and items in the events of Codex.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from codetaste.core.text import shorten
from codetaste.transcripts.event import EventKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SYSTEM_ROLES = frozenset({"system", "developer"})
_TEXTS = frozenset({"text", "input_text", "output_text", "refusal", "summary_text", "reasoning_text"})
_PICTURES = frozenset({"image", "input_image", "image_url"})
_MAX_UNKNOWN_CHARS = 2000
_JSON = json.JSONEncoder(ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class MessageBlock:
    """A part of a message; see ``TranscriptEvent`` for the fields."""

    kind: EventKind
    text: str
    tool: str = ""
    call_id: str = ""
    is_error: bool = False

    @property
    def key(self) -> tuple[str, str, bytes]:
        """The same for a block of a reply, and for that block when the agent sends it back; short."""
        text = self.text.strip()
        if self.kind is EventKind.CALL:
            with suppress(ValueError, RecursionError):
                text = json.dumps(json.loads(text), sort_keys=True)
        return self.kind, self.tool, sha256(text.encode("utf-8", "surrogatepass")).digest()


def message_blocks(message: Any) -> Iterator[MessageBlock]:  # noqa: ANN401 - JSON
    """Yield the parts of a message, item or block of instructions; what is no such thing has none."""
    if isinstance(message, str):
        yield MessageBlock(EventKind.USER, message)
    if not isinstance(message, dict):
        return
    role = message.get("role")
    if role == "tool":
        yield MessageBlock(EventKind.RESULT, content_text(message.get("content")), call_id=_id(message))
        return
    if isinstance(role, str):
        yield from _role_blocks(role, message)
    else:
        yield from _item(message)


def _role_blocks(role: str, message: Mapping[str, Any]) -> Iterator[MessageBlock]:
    is_reply = role == "assistant"
    kind = EventKind.TEXT if is_reply else EventKind.SYSTEM if role in _SYSTEM_ROLES else EventKind.USER
    for name in ("reasoning_content", "reasoning"):
        if isinstance(text := message.get(name), str) and text:
            yield MessageBlock(EventKind.REASONING, text)
            break
    raw = message.get("raw")
    if isinstance(raw, dict):  # of the own loop: a provider's blocks have the reasoning
        for block in as_list(raw.get("blocks")):
            yield from (each for each in message_blocks(block) if each.kind is EventKind.REASONING)
    content = message.get("content")
    if isinstance(content, str):
        if content:
            yield MessageBlock(kind, content)
    else:
        for block in as_list(content):
            yield from _content_block(kind, block)
    for call in as_list(message.get("tool_calls")):
        if isinstance(call, dict):
            yield from _chat_call(call)


def _chat_call(call: Mapping[str, Any]) -> Iterator[MessageBlock]:
    function = call.get("function", call.get("custom"))
    if isinstance(function, dict):
        arguments = function.get("arguments", function.get("input"))
        yield MessageBlock(
            EventKind.CALL, json_text(arguments), _text(function.get("name")), _text(call.get("id"))
        )


def _content_block(kind: EventKind, block: Any) -> Iterator[MessageBlock]:  # noqa: ANN401 - JSON
    if isinstance(block, str):
        yield MessageBlock(kind, block)
        return
    if not isinstance(block, dict):
        return
    match _text(block.get("type")):
        case name if name in _TEXTS:
            yield MessageBlock(kind, _text(block.get("text", block.get("refusal"))))
        case "tool_result":
            text, failed = content_text(block.get("content")), block.get("is_error") is True
            yield MessageBlock(EventKind.RESULT, text, call_id=_id(block), is_error=failed)
        case "result":  # of the own loop
            text, failed = content_text(block.get("content")), block.get("error") is True
            yield MessageBlock(EventKind.RESULT, text, call_id=_text(block.get("call")), is_error=failed)
        case name if name in _PICTURES:
            yield MessageBlock(kind, "[picture]")
        case _:
            parts = [*_item(block)]
            yield from parts
            if not parts:  # of a type that is not known here
                yield MessageBlock(kind, shorten(json_text(block), _MAX_UNKNOWN_CHARS))


def _item(item: Mapping[str, Any]) -> Iterator[MessageBlock]:
    """Yield the parts of an item of OpenAI's Responses, a block of Anthropic's, or an event of Codex."""
    match _text(item.get("type")):
        case name if name in _TEXTS:
            yield MessageBlock(EventKind.USER, _text(item.get("text")))
        case "agent_message":
            yield MessageBlock(EventKind.TEXT, _text(item.get("text")))
        case "error":
            yield MessageBlock(EventKind.ERROR, _text(item.get("message")))
        case "function_call_output" | "custom_tool_call_output" | "local_shell_call_output":
            yield MessageBlock(EventKind.RESULT, content_text(item.get("output")), call_id=_id(item))
        case "local_shell_call":
            yield MessageBlock(EventKind.CALL, json_text(item.get("action")), "local_shell", _id(item))
        case "command_execution" | "file_change" | "mcp_tool_call" | "web_search" | "todo_list" as name:
            yield from _codex_item(name, item)
        case _:
            yield from _reasoning_or_call(item)


def _reasoning_or_call(item: Mapping[str, Any]) -> Iterator[MessageBlock]:
    match item.get("type"):
        case "thinking":
            yield MessageBlock(EventKind.REASONING, _text(item.get("thinking")))
        case "redacted_thinking":
            yield MessageBlock(EventKind.REASONING, "[redacted]")
        case "reasoning":
            yield MessageBlock(EventKind.REASONING, _reasoning_text(item))
        case "tool_use" | "server_tool_use" | "call" | "function_call" | "custom_tool_call":
            arguments = next((item[key] for key in ("input", "arguments") if key in item), None)
            yield MessageBlock(EventKind.CALL, json_text(arguments), _text(item.get("name")), _id(item))


def _codex_item(name: str, item: Mapping[str, Any]) -> Iterator[MessageBlock]:
    """Yield a call and its result of an item in the events of Codex, which has both."""
    outcome = {"aggregated_output", "result", "exit_code", "status", "id", "type", "error"}
    arguments = {key: value for key, value in item.items() if key not in outcome}
    call_id, failed = _id(item), item.get("status") == "failed"
    yield MessageBlock(EventKind.CALL, json_text(arguments), name, call_id)
    found = next((item[key] for key in ("aggregated_output", "result", "error") if item.get(key)), "")
    text = found if isinstance(found, str) else content_text(found)
    if text or "status" in item:
        yield MessageBlock(EventKind.RESULT, text, call_id=call_id, is_error=failed)


def _reasoning_text(item: Mapping[str, Any]) -> str:
    if isinstance(item.get("text"), str):
        return str(item["text"])
    parts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
    return "\n\n".join(_text(part.get("text")) for part in parts if isinstance(part, dict)) or "[encrypted]"


def content_text(content: Any) -> str:  # noqa: ANN401 - JSON
    """Return the content of a result as text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(block.text for part in content for block in _content_block(EventKind.USER, part))
    if isinstance(content, dict) and isinstance(content.get("content"), str | list):
        return content_text(content["content"])
    return json_text(content)


def json_text(value: Any) -> str:  # noqa: ANN401 - JSON
    """Return a value as JSON, and a text as it is; None is an empty text."""
    if value is None or isinstance(value, str):
        return value or ""
    try:
        return _JSON.encode(value)
    except (RecursionError, TypeError, ValueError):
        return "[unreadable]"


def _id(block: Mapping[str, Any]) -> str:
    names = ("tool_use_id", "tool_call_id", "call_id", "id")
    return next((block[name] for name in names if isinstance(block.get(name), str)), "")


def _text(value: Any) -> str:  # noqa: ANN401 - JSON
    return value if isinstance(value, str) else json_text(value)


def as_list(value: Any) -> list[Any]:  # noqa: ANN401 - JSON
    """Return a list as it is; what is none is an empty one."""
    return value if isinstance(value, list) else []
