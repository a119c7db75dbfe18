"""The transcript of a job: all requests of its agent and their replies as JSON lines, each part once.

A line is one of these; later versions may add others, and further fields::

    {"transcript": 2, "job": …, "attempt": …, "protocol": …}    begins a session
    {"part": NAME, "kind": "message" | "system" | "tool" | "settings", "value": …}
    {"part": NAME, "kind": …, "stored": DIGEST}                 the same, its JSON stored by hash in blobs/
    {"request": N, "time": …, "side_call": …, "model": …, "requested_model": …, "effect": …, "stream": …,
     "max_output_tokens": …, "settings": NAME, "tools": [NAME, …], "system": [NAME, …],
     "continues": M, "common": K, "added": [NAME, …]}
    {"reply": N, "status": …, "messages": [NAME, …], "stop": …, "usage": {…}, "cost_usd": …, "model": …,
     "max_output_tokens": …, "duration_s": …, "request_id": …, "error": …}

A request's conversation is the first ``common`` messages of request ``continues`` plus ``added``, so a
conversation that continues adds only its new messages. ``tools`` and ``system`` are left out if they equal
those of request ``continues``. A part's name is a hash of its content without cache markers.
"""

from __future__ import annotations

import itertools
import json
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.hashing import canonical_json
from codetaste.core.jsonl import JsonlFile
from codetaste.errors import JournalError
from codetaste.gateway.prompt.parts import PartKind
from codetaste.llm.codec import value_from_json, value_to_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.prompt.parts import PromptPart
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.blobs import Blobs


FORMAT = 2


_MAX_INLINE_CHARS = 8192
"""A part with more characters of JSON is stored by its hash in blobs/."""

_BATCH_S = 0.1
"""Lines are collected for this long before they are written."""

_MAX_PREDECESSORS = 32
"""Number of earlier requests among which the predecessor of a request is searched."""


@dataclass(frozen=True, slots=True)
class _SentParts:
    number: int
    tools: tuple[str, ...] = ()
    system: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()


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
        named = {
            kind: tuple(self._names[part.name] for part in parts if part.kind is kind) for kind in PartKind
        }
        sent = _SentParts(number, named[PartKind.TOOL], named[PartKind.SYSTEM], named[PartKind.MESSAGE])
        before, common = self._predecessor(sent)
        written: dict[str, Any] = {"request": number, **line, "settings": named[PartKind.SETTINGS][0]}
        if before is None or before.tools != sent.tools:
            written["tools"] = [*sent.tools]
        if before is None or before.system != sent.system:
            written["system"] = [*sent.system]
        if before is not None:
            written |= {"continues": before.number, "common": common}
        self._add({**written, "added": [*sent.messages[common:]]})
        self._sent.append(sent)

    def add_reply(self, number: int, parts: Iterable[PromptPart], line: Mapping[str, Any]) -> None:
        """Add the reply to a request."""
        names = []
        for part in parts:
            self._part(part)
            names.append(part.name)
        self._add({"reply": number, **line, "messages": names})

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
        common = -1
        for earlier in reversed(self._sent):
            pairs = zip(earlier.messages, sent.messages, strict=False)
            same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            if same > common:
                best, common = earlier, same
            if same and same == len(earlier.messages):
                break  # the request continues this one
        return best, max(common, 0)

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
        return {"part": line["part"], "kind": line["kind"], "stored": await self._ctx.store_text(text)}


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One request and its reply. A part that is missing or damaged is None.

    Attributes:
        session: number of the session in the file, from 1.
        request: the line of the request.
        reply: the line of the reply; empty if the run was killed before it.
    """

    session: int
    request: Mapping[str, Any]
    reply: Mapping[str, Any]
    _sent: _SentParts
    _parts: _StoredParts

    @property
    def number(self) -> int:
        """Number of the request in its session, from 1."""
        return self._sent.number

    @property
    def is_agent_turn(self) -> bool:
        """Whether the request was a turn of the agent, not a side call."""
        return not self.request.get("side_call", False)

    @property
    def answered(self) -> bool:
        """Whether the model replied."""
        return bool(self.reply) and not self.reply.get("error")

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tools of the request."""
        return self._parts.values(self._sent.tools)

    @property
    def system(self) -> tuple[Any, ...]:
        """The blocks of instructions of the request."""
        return self._parts.values(self._sent.system)

    @property
    def messages(self) -> tuple[Any, ...]:
        """The conversation of the request."""
        return self._parts.values(self._sent.messages)

    @property
    def reply_messages(self) -> tuple[Any, ...]:
        """The messages of the reply; empty if there was none."""
        return self._parts.values(self.reply.get("messages", ()))


class _StoredParts:
    def __init__(self, blobs: Blobs) -> None:
        self.lines: dict[str, Mapping[str, Any]] = {}
        self._blobs = blobs

    def values(self, names: Iterable[str]) -> tuple[Any, ...]:
        return tuple(self._value(self.lines.get(name, {})) for name in names)

    def _value(self, line: Mapping[str, Any]) -> Any:  # noqa: ANN401 - JSON data
        try:
            value = line.get("value")
            if "stored" in line:
                value = json.loads(self._blobs.read(line["stored"]))
            return value_from_json(value)
        except (JournalError, KeyError, RecursionError, TypeError, ValueError):
            return None


def read_transcript(path: Path, blobs: Blobs) -> list[TranscriptEntry]:
    """Return all requests of a transcript, in order; a damaged line is skipped. Does blocking I/O.

    Args:
        path: the file.
        blobs: the run's long texts.

    Raises:
        JournalError: the file cannot be read.
    """
    parts, session = _StoredParts(blobs), 0
    entries: dict[tuple[int, int], TranscriptEntry] = {}
    for line in JsonlFile(path).read():
        try:
            match line:
                case {"transcript": _}:
                    session += 1
                case {"part": str(name)}:
                    parts.lines.setdefault(name, line)
                case {"request": int(number)}:
                    before = entries.get((session, line.get("continues", 0)))
                    sent = _sent_parts(line, before._sent if before else _SentParts(0))  # noqa: SLF001 - of this module
                    entries[session, number] = TranscriptEntry(session, line, {}, sent, parts)
                case {"reply": int(number), "messages": list()}:
                    entries[session, number] = replace(entries[session, number], reply=line)
        except (KeyError, TypeError):
            continue
    return [*entries.values()]


def _sent_parts(line: Mapping[str, Any], before: _SentParts) -> _SentParts:
    return _SentParts(
        line["request"],
        tuple(line.get("tools", before.tools)),
        tuple(line.get("system", before.system)),
        (*before.messages[: line.get("common", 0)], *line["added"]),
    )
