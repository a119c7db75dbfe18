"""What one job may do at the gateway, and what it has done: token, models, money, count and transcript."""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from codetaste.gateway.tally import Tally
from codetaste.gateway.transcript import Transcript
from codetaste.llm.wire.refusal import Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from anyio.abc import TaskGroup

    from codetaste.gateway.bound import JobCounts
    from codetaste.gateway.exchange import Exchange
    from codetaste.gateway.served import Served
    from codetaste.llm.wire.request import Protocol, WireRequest
    from codetaste.orchestration.job import JobContext

AT_ONCE = 32
"""Requests of one job that are worked on at once."""
_IN_LINE = 256
"""Requests of one job that may wait for that."""
_HELD_BYTES = 128 * 1024 * 1024
"""Of the bodies of one job's requests together."""


class Access:
    """One admission of a job. It ends with ``finish``; whoever asks after that is refused.

    Args:
        ctx: the job's; its budget pays.
        models: those that the job may use; the first one is asked wherever a program names none of them.
        others: the ids of models that the job may not use.
        protocol: which the job's program speaks.
        transcript: where its requests are written down.
        name_call: gives each call of the job a name that no other has.
    """

    def __init__(
        self,
        ctx: JobContext,
        models: Sequence[Served],
        others: frozenset[str],
        *,
        protocol: Protocol,
        transcript: Path,
        name_call: Callable[[], str],
    ) -> None:
        self.ctx, self.protocol, self.name_call = ctx, protocol, name_call
        self.token, self.base_path = f"ct-{secrets.token_urlsafe(32)}", ""
        self.tally = Tally(ctx.budget)
        self.transcript = Transcript(transcript, ctx)
        self.failure: Exception | None = None
        self.over = False
        self._models, self._others = tuple(models), others
        self._counts: dict[str, JobCounts] = {model.id: model.counts.of_a_job() for model in models}
        self._places, self._in_line, self._held = anyio.Semaphore(AT_ONCE, fast_acquire=True), 0, 0
        self._under_way: dict[anyio.CancelScope, Callable[[], bool]] = {}
        self._idle = anyio.Event()
        self._tasks: TaskGroup

    def model_for(self, asked: str) -> Served | None:
        """Return the model that a program means, None where the job may not use it."""
        for model in self._models:
            if asked in {model.id, model.name}:
                return model
        return None if asked in self._others else self._models[0]

    def counts_of(self, model: Served) -> JobCounts:
        """Return what this job knows of the lengths of its prompts."""
        return self._counts[model.id]

    def why_not(self) -> tuple[Refused, str] | None:
        """Say why no request of this job is taken any more; None while they are."""
        if self.over:
            return Refused.BAD_TOKEN, "the job of this token is over"
        if self.failure is not None:
            return Refused.BUDGET, f"nothing can be recorded any more: {self.failure}"
        if self.tally.refused:
            return Refused.BUDGET, self.tally.refused
        return None

    def apart(self, wire: WireRequest) -> str:
        """Say what a request asks for that no budget in dollars can hold; "" where all is well."""
        if not wire.apart or all(node.limits.usd is None for node in self.ctx.budget.chain):
            return ""
        return f"not under a budget in US dollars, as its cost cannot be bounded: {', '.join(wire.apart)}"

    @property
    def crowded(self) -> bool:
        """Whether too many requests wait already."""
        return self._in_line >= _IN_LINE

    @contextmanager
    def _line(self) -> Iterator[None]:
        self._in_line += 1
        try:
            yield
        finally:
            self._in_line -= 1

    def open(self, tasks: TaskGroup) -> None:
        """Begin: exchanges run in ``tasks``, and the transcript is written there."""
        self._tasks = tasks
        tasks.start_soon(self._write)

    def start(self, exchange: Exchange, held: int) -> None:
        """Run an exchange that has a place, and ``held`` bytes in it."""
        self._tasks.start_soon(self._run, exchange, held)

    async def _run(self, exchange: Exchange, held: int) -> None:
        try:
            await exchange.run()
        finally:
            self.leave_place(held)

    async def take_place(self) -> None:
        """Wait for one of the places for requests; ``leave_place`` gives it back."""
        with self._line():
            await self._places.acquire()

    def leave_place(self, held: int) -> None:
        """Give a place back, and the bytes that were held in it."""
        self._held -= held
        self._places.release()

    def hold(self, more: int) -> bool:
        """Count bytes of a body; False where the job's requests hold too many already."""
        if self._held + more > _HELD_BYTES:
            return False
        self._held += more
        return True

    def broke(self, error: Exception) -> None:
        """Say that the job cannot go on; the error is raised where it was admitted."""
        self.failure = self.failure or error
        self.tally.stopped.set()

    @contextmanager
    def under_way(self, in_flight: Callable[[], bool]) -> Iterator[anyio.CancelScope]:
        """Give the scope of one exchange; it is shielded, and ended by ``finish`` alone.

        ``in_flight`` says whether its provider may be at work, so that it is worth waiting for.
        """
        with anyio.CancelScope(shield=True) as scope:
            self._under_way[scope] = in_flight
            try:
                yield scope
            finally:
                del self._under_way[scope]
                if not self._under_way:
                    self._idle.set()

    async def finish(self) -> None:
        """Take no more requests, end those that wait, and let those in flight come to their end.

        Those that are still in flight when this is cancelled are given up, and stay charged.
        """
        self.over = True
        for scope, in_flight in tuple(self._under_way.items()):
            if not in_flight():
                scope.cancel()
        try:
            while self._under_way:
                self._idle = anyio.Event()
                await self._idle.wait()
        finally:
            for scope in self._under_way:
                scope.cancel()

    async def _write(self) -> None:
        """Write the transcript until it is closed; a disk that fails ends the job."""
        with anyio.CancelScope(shield=True):
            try:
                await self.transcript.run()
            except Exception as error:  # noqa: BLE001 - raised where the job was admitted
                self.broke(error)
