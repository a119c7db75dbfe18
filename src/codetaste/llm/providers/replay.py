"""Provider "replay": replays a recorded conversation with a model, or records one.

- ``replay``: every reply comes from the cassette; a request that is not recorded raises ``CassetteMiss``.
- ``record``: every request goes to the model, and the replies are written to the cassette.
- ``record-missing``: only requests that are not recorded go to the model, and their replies are added.

Identical requests are answered in the order of their recording. Which call of this run got which recorded
reply is written to a ledger before the reply is used, so that a killed run resumes at the same place and can
look its replies up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.core.jsonl import JsonlFile
from codetaste.errors import CassetteMiss, JournalError
from codetaste.llm.providers.cassette import RequestKey

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.llm.config import CassetteMode
    from codetaste.llm.messages import Reply, Request
    from codetaste.llm.model import Model
    from codetaste.llm.providers.cassette import Cassette


class ReplayModel:
    """A model that answers from a cassette, from ``inner``, or from both.

    Args:
        model_id: the model's id in the config.
        model: the provider's name of the model; part of each recorded request.
        cassette: the recording.
        inner: the model to record; None if there is only the recording.
        mode: how the cassette is used; must be "replay" without ``inner``.
        ledger: the file that records which reply each call of this run got.
    """

    def __init__(
        self,
        model_id: str,
        model: str,
        cassette: Cassette,
        *,
        inner: Model | None,
        mode: CassetteMode,
        ledger: Path,
    ) -> None:
        if inner is None and mode != "replay":
            raise ValueError(f"mode {mode!r} needs a model to record")
        self.id, self._model, self._mode = model_id, model, mode
        self._cassette, self._inner = cassette, inner
        # A recording alone charges nothing.
        self.has_ledger = inner is None or inner.has_ledger
        self._ledger = JsonlFile(ledger)
        self._answered: dict[str, tuple[str, int]] = {}
        self._next: dict[str, int] = {}
        self._loaded = False
        self._lock = anyio.Lock()

    async def complete(self, request: Request, *, call: str) -> Reply:
        """Answer from the cassette, or call the model and record its reply, depending on the mode.

        Raises:
            CassetteMiss: this request was not recorded; with the difference from the most similar one. Or the
                cassette or the ledger cannot be read.
            ModelError: raised by the recorded model.
            JournalError: the cassette or the ledger cannot be written.
        """
        try:
            await self._load()
        except JournalError as error:  # nothing was sent
            raise CassetteMiss(f"model {self.id}: {error}") from error
        if call in self._answered:
            key, nth = self._answered[call]
            known = self._cassette.reply(key, nth)
            if known is not None:
                return known
        request_key = RequestKey.from_request(self._model, request)
        nth = self._next.get(request_key.key, 0)
        reply = None if self._mode == "record" else self._cassette.reply(request_key.key, nth)
        if reply is not None:
            output = None if reply.usage is None else reply.usage.output
            if output is not None and output > request.max_output_tokens:
                raise CassetteMiss(
                    f"model {self.id}: the recorded reply has {output} output tokens, and the budget has "
                    f"room for {request.max_output_tokens}; raise the budget, or record anew"
                )
            self._next[request_key.key] = nth + 1
        elif self._inner is None or self._mode == "replay":
            raise self._miss(request_key)
        else:
            reply = await self._inner.complete(request, call=call)
            nth = self._next.get(request_key.key, 0)  # identical requests may have been answered meanwhile
            self._next[request_key.key] = nth + 1
            await self._cassette.add(request_key, nth, reply)
        self._answered[call] = (request_key.key, nth)
        await self._ledger.append([{"call": call, "key": request_key.key, "nth": nth}])
        return reply

    async def lookup(self, call: str) -> Reply | None:
        """Return the reply to an earlier ``call``, from this run's ledger or that of the recorded model."""
        await self._load()
        if call in self._answered:
            return self._cassette.reply(*self._answered[call])
        return None if self._inner is None else await self._inner.lookup(call)

    async def aclose(self) -> None:
        """Close the recorded model."""
        if self._inner is not None:
            await self._inner.aclose()

    async def _load(self) -> None:
        async with self._lock:
            if self._loaded:
                return
            await self._cassette.load()
            await anyio.to_thread.run_sync(self._ledger.read_into, self._take)
            self._loaded = True

    def _take(self, line: dict[str, Any]) -> None:
        if {"call", "key", "nth"} <= line.keys():
            self._answered[line["call"]] = (line["key"], line["nth"])
            self._next[line["key"]] = max(self._next.get(line["key"], 0), line["nth"] + 1)

    def _miss(self, request_key: RequestKey) -> CassetteMiss:
        times = self._cassette.count(request_key.key)
        if times:
            where = f"this request was recorded {times} times and was made once more"
        else:
            where = self._cassette.describe_mismatch(request_key)
        return CassetteMiss(
            f'model {self.id}: not in the cassette: {where}; record it with mode = "record-missing"'
        )
