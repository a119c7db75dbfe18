"""Provider "replay": a recorded conversation stands in for a model, or is recorded from one.

- ``replay``: every reply comes from the cassette; a request that is not there is a ``CassetteMiss``.
- ``record``: every request goes to the model, and the cassette holds the answers.
- ``record-missing``: only what the cassette lacks goes to the model, and is added.

Identical requests are answered in the order in which they were recorded. Which call of this run was given
which recorded reply is on disk before the reply is used, so that a run that was killed goes on at the same
place and can recall what it was answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from codetaste.errors import CassetteMiss
from codetaste.llm.cassette import Asked
from codetaste.llm.record import Record

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.llm.cassette import Cassette
    from codetaste.llm.config import CassetteMode
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.model import Model


class ReplayModel:
    """A model that answers from a cassette, from ``inner``, or from both.

    Args:
        model_id: what the config calls this model.
        model: the provider's name of the model; part of what is recorded.
        cassette: the recording.
        inner: the model to record; None when there is only the recording.
        mode: what is done with the cassette; must be "replay" without ``inner``.
        served: a file that remembers what this run was answered.
    """

    def __init__(
        self,
        model_id: str,
        model: str,
        cassette: Cassette,
        *,
        inner: Model | None,
        mode: CassetteMode,
        served: Path,
    ) -> None:
        if inner is None and mode != "replay":
            raise ValueError(f"mode {mode!r} needs a model to ask")
        self._id, self._model, self._cassette, self._inner, self._mode = (
            model_id,
            model,
            cassette,
            inner,
            mode,
        )
        self._record = Record(served)
        self._served: dict[str, tuple[str, int]] = {}
        self._next: dict[str, int] = {}
        self._loaded = False
        self._lock = anyio.Lock()

    @property
    def id(self) -> str:
        """What the config calls this model."""
        return self._id

    @property
    def remembers(self) -> bool:
        """A recording alone charges nothing that is not on record; beside a model, that model decides."""
        return self._inner is None or self._inner.remembers

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Answer from the cassette, or ask the model and record it, as the mode says.

        Raises:
            CassetteMiss: nothing was recorded for this request; says what differs from the nearest one.
            ModelError: whatever the model raises.
            JournalError: cassette or record cannot be read or written.
        """
        await self._load()
        if call in self._served:
            key, nth = self._served[call]
            known = self._cassette.reply(key, nth)
            if known is not None:
                return known
        asked = Asked.of(self._model, request)
        reply = self._recorded(asked, request)
        nth = self._take(asked.key) if reply is not None else -1
        if reply is None:
            reply = await self._ask(asked, request, call)
            nth = self._take(asked.key)
            await self._cassette.add(asked, nth, reply)
        self._served[call] = (asked.key, nth)
        await self._record.append([{"call": call, "key": asked.key, "nth": nth}])
        return reply

    async def recall(self, call: str) -> Reply | None:
        """Return what ``call`` was answered, from this run's own record, or from the recorded model's."""
        await self._load()
        if call in self._served:
            return self._cassette.reply(*self._served[call])
        return None if self._inner is None else await self._inner.recall(call)

    async def aclose(self) -> None:
        """Close the model that is recorded."""
        if self._inner is not None:
            await self._inner.aclose()

    async def _load(self) -> None:
        async with self._lock:
            if self._loaded:
                return
            await self._cassette.load()
            for line in await anyio.to_thread.run_sync(list, self._record.read()):
                if {"call", "key", "nth"} <= line.keys():
                    self._served[line["call"]] = (line["key"], line["nth"])
                    self._next[line["key"]] = max(self._next.get(line["key"], 0), line["nth"] + 1)
            self._loaded = True

    def _recorded(self, asked: Asked, request: Request) -> Reply | None:
        """Return the reply whose turn it is, where it may be replayed."""
        if self._mode == "record":
            return None
        reply = self._cassette.reply(asked.key, self._next.get(asked.key, 0))
        if reply is not None:
            self._check_cap(reply, request)
        return reply

    async def _ask(self, asked: Asked, request: Request, call: str) -> Reply:
        if self._inner is None or self._mode == "replay":
            raise self._miss(asked)
        return await self._inner.complete(request, call=call)

    def _take(self, key: str) -> int:
        """Take the next place in the row of identical requests."""
        nth = self._next.get(key, 0)
        self._next[key] = nth + 1
        return nth

    def _check_cap(self, recorded: Reply, request: Request) -> None:
        """Refuse a reply that the model could not have given under the cap of ``request``."""
        output = None if recorded.usage is None else recorded.usage.output
        if output is not None and output > request.max_output_tokens:
            raise CassetteMiss(
                f"model {self._id}: the recorded reply has {output} output tokens, and the budget has room "
                f"for {request.max_output_tokens}; raise the budget, or record anew"
            )

    def _miss(self, asked: Asked) -> CassetteMiss:
        times = self._cassette.times(asked.key)
        if times:
            where = f"this request was recorded {times} times and is asked once more"
        else:
            where = self._cassette.departure(asked)
        return CassetteMiss(
            f'model {self._id}: not in the cassette: {where}; record it with mode = "record-missing"'
        )
