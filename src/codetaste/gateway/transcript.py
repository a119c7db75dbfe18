"""The transcript of a job: all requests of its agent and their replies as JSON lines, each part once.

A line is one of these; later versions may add others, and further fields::

    {"transcript": 1, "job": …, "attempt": …, "protocol": …}    begins a session
    {"part": NAME, "kind": "message" | "system" | "tool" | "settings", "value": …}
    {"part": NAME, "kind": …, "kept": DIGEST}                   the same, its JSON stored by hash in blobs/
    {"request": N, "t": …, "side": …, "model": …, "asked": …, "effect": …, "stream": …, "cap": …,
     "settings": NAME, "tools": [NAME, …], "system": [NAME, …], "after": M, "keep": K, "added": [NAME, …]}
    {"reply": N, "status": …, "said": [NAME, …], "stop": …, "usage": {…}, "cost_usd": …, "model": …,
     "cap": …, "first_s": …, "took_s": …, "request_id": …, "error": …}

A request's conversation is the first ``keep`` messages of request ``after`` plus ``added``, so a conversation
that continues adds only its new messages. ``tools`` and ``system`` are left out if they equal those of
request ``after``. A part's name is a hash of its content without cache markers.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.core.hashing import canonical_json
from codetaste.core.jsonl import JsonlFile
from codetaste.errors import JournalError
from codetaste.llm.codec import value_from_json, value_to_json
from codetaste.llm.wire.common.tool_calls import read_arguments

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.prompt import PromptPart
    from codetaste.orchestration.job import JobContext


FORMAT = 1

_MAX_INLINE_CHARS = 8192
"""A part with more characters of JSON is stored by its hash in blobs/."""

_BATCH_S = 0.1
"""Lines are collected for this long before they are written."""

_MAX_PREDECESSORS = 32
"""Number of earlier requests among which the predecessor of a request is searched."""


@dataclass(frozen=True, slots=True)
class _SentParts:
    number: int
    tools: tuple[str, ...]
    system: tuple[str, ...]
    messages: tuple[str, ...]


class Transcript:
    """Transcript writer: the ``add_*`` methods queue lines, and ``run`` writes them in order."""

    def __init__(self, path: Path, ctx: JobContext) -> None:
        self._record, self._ctx = JsonlFile(path, durable=False), ctx
        self._names: dict[str, str] = {}
        self._sent: deque[_SentParts] = deque(maxlen=_MAX_PREDECESSORS)
        self._queue: list[dict[str, Any]] = []
        self._wake, self._closed = anyio.Event(), anyio.Event()

    def begin(self, protocol: str) -> None:
        """Add the line that begins a session."""
        ctx = self._ctx
        self._add({"transcript": FORMAT, "job": ctx.key, "attempt": ctx.attempt, "protocol": protocol})

    def add_request(self, number: int, parts: Sequence[PromptPart], line: Mapping[str, Any]) -> None:
        """Add a request and its new parts."""
        for part in parts:
            self._part(part)
        parts_of_kind = {
            kind: tuple(self._names[part.name] for part in parts if part.kind == kind) for kind in _KINDS
        }
        sent = _SentParts(number, parts_of_kind["tool"], parts_of_kind["system"], parts_of_kind["message"])
        before, keep = self._predecessor(sent)
        written: dict[str, Any] = {"request": number, **line, "settings": parts_of_kind["settings"][0]}
        if before is None or before.tools != sent.tools:
            written["tools"] = [*sent.tools]
        if before is None or before.system != sent.system:
            written["system"] = [*sent.system]
        if before is not None:
            written |= {"after": before.number, "keep": keep}
        self._add({**written, "added": [*sent.messages[keep:]]})
        self._sent.append(sent)

    def add_reply(self, number: int, parts: Iterable[PromptPart], line: Mapping[str, Any]) -> None:
        """Add the reply to a request."""
        names = []
        for part in parts:
            self._part(part)
            names.append(part.name)
        self._add({"reply": number, **line, "said": names})

    def close(self) -> None:
        """Make ``run`` return once all lines are written."""
        self._closed.set()
        self._wake.set()

    async def run(self) -> None:
        """Write queued lines until closed.

        Raises:
            StorageFull: no space is left.
            JournalError: the file cannot be written.
        """
        while True:
            await self._wake.wait()
            with anyio.move_on_after(_BATCH_S):
                await self._closed.wait()
            self._wake = anyio.Event()
            lines, self._queue = self._queue, []
            if lines:
                await self._record.append([await self._stored_line(line) for line in lines])
            if self._closed.is_set() and not self._queue:
                return

    def _part(self, part: PromptPart) -> None:
        if part.name not in self._names:
            self._names[part.name] = part.name
            self._add({"part": part.name, "kind": part.kind, "value": part.value})

    def _predecessor(self, sent: _SentParts) -> tuple[_SentParts | None, int]:
        """Return the earlier request with the longest common beginning, and its number of messages."""
        best: _SentParts | None = None
        keep = -1
        for earlier in reversed(self._sent):
            same = sum(
                1
                for _ in itertools.takewhile(
                    lambda pair: pair[0] == pair[1], zip(earlier.messages, sent.messages, strict=False)
                )
            )
            if same > keep:
                best, keep = earlier, same
            if same and same == len(earlier.messages):
                break  # the request continues this one
        return best, max(keep, 0)

    def _add(self, line: dict[str, Any]) -> None:
        self._queue.append(line)
        self._wake.set()

    async def _stored_line(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return a line as it is written; a long value is stored by its hash."""
        if "value" not in line:
            return {name: value_to_json(value) for name, value in line.items()}
        value = value_to_json(line["value"])
        text = canonical_json(value)
        if len(text) <= _MAX_INLINE_CHARS:
            return {**line, "value": value}
        return {"part": line["part"], "kind": line["kind"], "kept": await self._ctx.store_text(text)}


_KINDS = ("settings", "tool", "system", "message")


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
