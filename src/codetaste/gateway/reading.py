"""Reader of transcripts: each request with its conversation, its reply, and the tool calls in the reply."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.errors import JournalError
from codetaste.llm.codec import value_from_json
from codetaste.llm.record import JsonlFile
from codetaste.llm.wire.calls import read_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One request and its reply.

    Attributes:
        protocol: the protocol of the parts.
        admission: number of the session in the file, from 1.
        number: number of the request in its session, from 1.
        request: the line of the request, as ``transcript.py`` describes it.
        reply: the line of the reply; empty if the run was killed before it.
        tools: of the request.
        system: blocks of instructions of the request.
        messages: the conversation of the request.
        reply_messages: the messages of the reply; empty if there was none.
    """

    protocol: str
    admission: int
    number: int
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    tools: tuple[Any, ...]
    system: tuple[Any, ...]
    messages: tuple[Any, ...]
    reply_messages: tuple[Any, ...]

    @property
    def is_agent_turn(self) -> bool:
        """Whether the request was a turn of the agent, not a side call."""
        return not self.request.get("side", False)

    @property
    def tool_calls(self) -> tuple[TranscriptToolCall, ...]:
        """The tool calls of the reply, in order."""
        return tuple(tool_calls_in(self.protocol, self.reply_messages))


@dataclass(frozen=True, slots=True)
class TranscriptToolCall:
    """A tool call of a model; the text of a free-form tool is the argument ``input``."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(slots=True)
class _RequestLine:
    line: Mapping[str, Any]
    tools: list[str]
    system: list[str]
    messages: list[str]


@dataclass(slots=True)
class _TranscriptState:
    """State after the lines read so far."""

    parts: dict[str, Any] = field(default_factory=dict)
    protocol: str = ""
    admission: int = 0
    requests: dict[int, _RequestLine] = field(default_factory=dict)
    replies: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def add_request(self, line: Mapping[str, Any]) -> None:
        number = line["request"]
        after = self.requests.get(line.get("after", 0)) or _RequestLine({}, [], [], [])
        self.requests[number] = _RequestLine(
            line,
            line.get("tools", after.tools),
            line.get("system", after.system),
            [*after.messages[: line.get("keep", 0)], *line["added"]],
        )

    def entries(self) -> Iterator[TranscriptEntry]:
        for number, request in self.requests.items():
            reply = self.replies.get(number, {})
            yield TranscriptEntry(
                self.protocol,
                self.admission,
                number,
                request.line,
                reply,
                self._values(request.tools),
                self._values(request.system),
                self._values(request.messages),
                self._values(reply.get("said", ())),
            )

    def _values(self, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(self.parts[name] for name in names)


async def read_transcript(path: Path, fetch: Callable[[str], Awaitable[str]]) -> list[TranscriptEntry]:
    """Return all requests of a transcript, in order.

    Args:
        path: the file.
        fetch: returns a stored text by its digest: ``JobContext.load_text``, or that of the run's ``Blobs``.

    Raises:
        JournalError: the transcript or a part of it is missing or damaged.
    """
    file, found = _TranscriptState(), list[TranscriptEntry]()
    lines = await anyio.to_thread.run_sync(list, JsonlFile(path).read())
    if not lines:
        raise JournalError(f"{path}: the transcript is missing or empty")
    try:
        for line in lines:
            match line:
                case {"transcript": _, "protocol": protocol}:
                    found.extend(file.entries())
                    file = _TranscriptState(file.parts, protocol, file.admission + 1)
                case {"part": name, "kept": digest}:
                    file.parts[name] = value_from_json(json.loads(await fetch(digest)))
                case {"part": name, "value": value}:
                    file.parts[name] = value_from_json(value)
                case {"request": _}:
                    file.add_request(line)
                case {"reply": number}:
                    file.replies[number] = line
        found.extend(file.entries())
    except (KeyError, TypeError, ValueError) as error:
        raise JournalError(f"{path}: the transcript is damaged: {error!r}") from error
    return found


def tool_calls_in(protocol: str, messages: Iterable[Any]) -> Iterator[TranscriptToolCall]:
    """Yield the tool calls in a model's messages."""
    for each in messages:
        if protocol == "anthropic":
            content = each.get("content")
            for block in content if isinstance(content, list) else ():
                if block.get("type") == "tool_use":
                    yield _tool_call(block.get("name"), block.get("input"))
        elif protocol == "openai":
            if each.get("type") == "function_call":
                yield _tool_call(each.get("name"), each.get("arguments"))
            elif each.get("type") == "custom_tool_call":
                yield _tool_call(each.get("name"), {"input": each.get("input")})
        else:
            for call in each.get("tool_calls") or ():
                kind = call.get("custom") or call.get("function") or {}
                given = {"input": kind.get("input")} if "custom" in call else kind.get("arguments")
                yield _tool_call(kind.get("name"), given)


def _tool_call(name: object, arguments: object) -> TranscriptToolCall:
    if isinstance(arguments, str):
        arguments = read_arguments(arguments)[0]
    return TranscriptToolCall(str(name or ""), arguments if isinstance(arguments, dict) else {})
