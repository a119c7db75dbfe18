"""The transcript of a job: all that its agent was sent and answered, as JSON lines, each part once.

A line is one of these; others, and fields that are not named here, may come with later versions::

    {"transcript": 1, "job": …, "attempt": …, "protocol": …}    begins an admission
    {"part": NAME, "kind": "message" | "system" | "tool" | "settings", "value": …}
    {"part": NAME, "kind": …, "kept": DIGEST}                   the same, its JSON stored by hash in blobs/
    {"request": N, "t": …, "side": …, "model": …, "asked": …, "effect": …, "stream": …, "cap": …,
     "settings": NAME, "tools": [NAME, …], "system": [NAME, …], "after": M, "keep": K, "added": [NAME, …]}
    {"reply": N, "status": …, "said": [NAME, …], "stop": …, "usage": {…}, "cost_usd": …, "model": …,
     "cap": …, "first_s": …, "took_s": …, "request_id": …, "error": …}

A conversation is ``added`` to the first ``keep`` messages of request ``after``, so that one that goes on adds
only what is new. The same holds for ``tools`` and ``system``, which are left out where they are those of
request ``after``. A part's name follows from its content without the markers of a cache.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.llm.codec import canonical, pack
from codetaste.llm.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.gateway.parts import Part
    from codetaste.orchestration.job import JobContext

FORMAT = 1
_INLINE = 8192
"""Characters of JSON beyond which a part is stored by its hash, beside the journal."""
_SOON_S = 0.1
"""How long lines are gathered before they are written."""
_LOOKED_AT = 32
"""Earlier requests among which the one is looked for that a request goes on from."""


@dataclass(frozen=True, slots=True)
class _Sent:
    """The names of a request's parts."""

    number: int
    tools: tuple[str, ...]
    system: tuple[str, ...]
    said: tuple[str, ...]


class Transcript:
    """Takes lines at once and writes them soon, in order; ``run`` does the writing."""

    def __init__(self, path: Path, ctx: JobContext) -> None:
        self._record, self._ctx = Record(path, durable=False), ctx
        self._known: dict[str, str] = {}
        self._sent: deque[_Sent] = deque(maxlen=_LOOKED_AT)
        self._queue: list[dict[str, Any]] = []
        self._wake, self._closed = anyio.Event(), anyio.Event()

    def begin(self, protocol: str) -> None:
        """Say whose transcript this is."""
        ctx = self._ctx
        self._add({"transcript": FORMAT, "job": ctx.key, "attempt": ctx.attempt, "protocol": protocol})

    def request(self, number: int, parts: Sequence[Part], line: Mapping[str, Any]) -> None:
        """Write down a request."""
        for part in parts:
            self._part(part)
        named = {
            kind: tuple(self._known[part.name] for part in parts if part.kind == kind) for kind in _KINDS
        }
        sent = _Sent(number, named["tool"], named["system"], named["message"])
        before, keep = self._before(sent)
        written: dict[str, Any] = {"request": number, **line, "settings": named["settings"][0]}
        if before is None or before.tools != sent.tools:
            written["tools"] = [*sent.tools]
        if before is None or before.system != sent.system:
            written["system"] = [*sent.system]
        if before is not None:
            written |= {"after": before.number, "keep": keep}
        self._add({**written, "added": [*sent.said[keep:]]})
        self._sent.append(sent)

    def reply(self, number: int, said: Iterable[Part], line: Mapping[str, Any]) -> None:
        """Write down what became of a request."""
        names = []
        for part in said:
            self._part(part)
            names.append(part.name)
        self._add({"reply": number, **line, "said": names})

    def close(self) -> None:
        """Let ``run`` end once all is written."""
        self._closed.set()
        self._wake.set()

    async def run(self) -> None:
        """Write what comes until closed.

        Raises:
            StorageFull: no space is left.
            JournalError: it cannot be written.
        """
        while True:
            await self._wake.wait()
            with anyio.move_on_after(_SOON_S):
                await self._closed.wait()
            self._wake = anyio.Event()
            lines, self._queue = self._queue, []
            if lines:
                await self._record.append([await self._kept(line) for line in lines])
            if self._closed.is_set() and not self._queue:
                return

    def _part(self, part: Part) -> None:
        if part.name not in self._known:
            self._known[part.name] = part.name
            self._add({"part": part.name, "kind": part.kind, "value": part.value})

    def _before(self, sent: _Sent) -> tuple[_Sent | None, int]:
        """Return the earlier request that has most of the beginning of this one, and how much."""
        best: _Sent | None = None
        keep = -1
        for earlier in reversed(self._sent):
            same = sum(
                1
                for _ in itertools.takewhile(
                    lambda pair: pair[0] == pair[1], zip(earlier.said, sent.said, strict=False)
                )
            )
            if same > keep:
                best, keep = earlier, same
            if same and same == len(earlier.said):
                break  # it goes on from there
        return best, max(keep, 0)

    def _add(self, line: dict[str, Any]) -> None:
        self._queue.append(line)
        self._wake.set()

    async def _kept(self, line: dict[str, Any]) -> dict[str, Any]:
        """Return a line as it is written: what is long is stored beside the journal."""
        if "value" not in line:
            return {name: pack(value) for name, value in line.items()}
        value = pack(line["value"])
        text = canonical(value)
        if len(text) <= _INLINE:
            return {**line, "value": value}
        return {"part": line["part"], "kind": line["kind"], "kept": await self._ctx.keep(text)}


_KINDS = ("settings", "tool", "system", "message")
