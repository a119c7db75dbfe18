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
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.llm.codec import canonical_json, value_to_json
from codetaste.llm.record import JsonlFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.parts import PromptPart
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
