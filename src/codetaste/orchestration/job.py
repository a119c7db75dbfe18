"""What a job is, how it can end, and what it is given while it runs.

A job is a coroutine with a key, needs, resources and a budget. Its effects (model replies, tool results) are
recorded under (key, fingerprint, name) and shared by all its attempts and sessions: an attempt after a crash
or a retry replays them and goes on where the recording ends.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause, CodetasteError
from codetaste.orchestration.events import CallRetrying, Note, WaitEnded, WaitStarted
from codetaste.orchestration.journal import Json, plain
from codetaste.orchestration.money import Snapshot
from codetaste.orchestration.paid import Paid

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from codetaste.orchestration.budget import Budget, Reservation
    from codetaste.orchestration.events import Event
    from codetaste.orchestration.money import Cost
    from codetaste.orchestration.record import Record

__all__ = ["Job", "JobContext", "Json", "Outcome", "Paid", "Status"]


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work.

    ``fingerprint`` stands for all that decides the result except the results of ``needs``, which the
    scheduler adds. ``budget`` is the node the job draws from: the scheduler gives each job a node of its own
    beneath it, named by ``key``. ``lane`` is what fairness is about (a model's id). ``free`` jobs need no
    money and run even when the budget is used up. ``least`` is what the job needs to do anything useful: its
    first call, at its cheapest. ``for_others``: it is of use only to the jobs that need it, and is not run
    when none of them can be.
    """

    key: str
    run: Callable[[JobContext], Awaitable[Json]]
    budget: Budget
    fingerprint: str
    needs: tuple[str, ...] = ()
    resources: Mapping[str, float] = field(default_factory=dict)
    lane: str = ""
    title: str = ""
    free: bool = False
    least: Cost | None = None
    for_others: bool = False


class Status(StrEnum):
    """How a job ended. All but DONE may run again in a later session."""

    DONE = "done"
    FAILED = "failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended, what it returned (``None`` where nothing), why it did not finish, what it cost.

    ``attempts`` counts all that were started, earlier sessions included; ``resumed`` says that the result is
    an earlier session's. ``error`` is one line, ``traceback`` is there for faults of the program.
    """

    key: str
    status: Status
    value: Json = None
    cause: Cause | None = None
    error: str = ""
    attempts: int = 0
    cost: Snapshot = field(default_factory=Snapshot)
    resumed: bool = False
    traceback: str = ""

    @property
    def usable(self) -> bool:
        """Whether jobs that need this one can run: it is done, or was cut short and still has a value."""
        cut_short = self.status in {Status.BUDGET_EXCEEDED, Status.TIMEOUT}
        return self.status is Status.DONE or (cut_short and self.value is not None)


class JobContext:
    """What a running job is given. ``needs`` holds the results of the jobs it needs, by key."""

    def __init__(
        self,
        *,
        key: str,
        attempt: int,
        fingerprint: str,
        budget: Budget,
        needs: Mapping[str, Json],
        record: Record,
    ) -> None:
        self.key, self.attempt, self.budget, self.needs = key, attempt, budget, needs
        self.fingerprint = fingerprint
        self.ended_early: CodetasteError | None = None
        self._record = record
        self._under_way: set[str] = set()

    def recorded(self, name: str) -> bool:
        """Whether effect ``name`` is in the journal."""
        return name in self._record.effects(self.key, self.fingerprint)

    async def effect(self, name: str, do: Callable[[], Awaitable[Json]]) -> Json:
        """Return effect ``name`` as recorded, or else do it and return it once its record is durable.

        Raises:
            ValueError: the same effect is under way in this job already.
            StorageFull: it was done and could not be recorded.
        """
        effects = self._record.effects(self.key, self.fingerprint)
        if name in effects:
            return plain(effects[name])
        if name in self._under_way:
            raise ValueError(f"job {self.key}: effect {name} is under way already; give each its own name")
        self._under_way.add(name)
        try:
            value = plain(await do())
            await self._record.effect(self.key, self.fingerprint, name, value)
        finally:
            self._under_way.discard(name)
        return plain(value)

    def dangling(self, name: str) -> tuple[Paid, ...]:
        """Return the calls made for effect ``name`` that were sent and whose cost nobody knows.

        They are charged as unknown. Ask the provider's own record and settle them, oldest first.
        """
        return self._record.dangling(self.key, self.fingerprint, name, self.budget)

    def unsettled(self) -> tuple[str, ...]:
        """Return the effects for which ``dangling`` has calls, those in flight included, in no order."""
        return self._record.history.unsettled(self.key, self.fingerprint)

    async def pay(self, name: str, wanted: Cost, least: Cost | None = None, note: Json = None) -> Paid:
        """Reserve money for one call that is to give effect ``name``; durable before it returns.

        Grants less than ``wanted``, but at least ``least``, where no more is left. Waiting for money in
        flight elsewhere stops the working clock. ``note`` is kept with the reservation.

        Raises:
            BudgetExceeded: it can never fit; nothing was charged.
            StorageFull: the reservation could not be recorded; do not make the call.
        """
        return await self.paid(name, await self.set_aside(wanted, least), note)

    async def set_aside(self, wanted: Cost, least: Cost | None = None) -> Reservation:
        """Reserve money as ``pay`` does, but in memory only: pass it to ``paid``, or release it.

        Raises:
            BudgetExceeded: it can never fit; nothing was charged.
        """
        return await self.budget.reserve(wanted, least, while_waiting=lambda: self.waiting("budget"))

    def set_aside_now(self, wanted: Cost, least: Cost | None = None) -> Reservation | None:
        """Do as ``set_aside`` does where that need not wait; None where it must.

        Raises:
            BudgetExceeded: it can never fit; nothing was charged.
        """
        return self.budget.reserve_now(wanted, least)

    async def paid(
        self,
        name: str,
        reservation: Reservation,
        note: Json = None,
        *,
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> Paid:
        """Make money that was set aside a paid call; durable before it returns. See ``pay``.

        ``meanwhile`` makes ready for the call while the disk is at work: nothing may be sent there.

        Raises:
            StorageFull: it could not be recorded, and was released; do not make the call.
        """
        return await self._record.reserve(
            self.key, self.fingerprint, name, reservation, note, meanwhile=meanwhile
        )

    @contextmanager
    def waiting(self, what: str, *, working: bool = False) -> Iterator[None]:
        """Tell that the job waits for ``what``, and stop its working clock (for a slot, a rate limit).

        ``working`` lets the clock go on: time that an outage takes is the job's own.
        """
        begun_s = anyio.current_time()
        self._record.note({"event": "wait", "key": self.key, "what": what})
        self.publish(WaitStarted(self.key, what))
        try:
            with nullcontext() if working else self.budget.waiting():
                yield
        finally:
            waited_s = round(anyio.current_time() - begun_s, 3)
            self._record.note({"event": "waited", "key": self.key, "what": what, "waited_s": waited_s})
            self.publish(WaitEnded(self.key, what, waited_s))

    def cleaning_up(self) -> AbstractContextManager[anyio.CancelScope]:
        """Give a shielded cancel scope for clean-up, bounded by the scheduler's grace.

        The grace is cut short when the user asks a second time to stop.
        """
        return self._record.grace.scope()

    def cut_short(self, why: CodetasteError) -> None:
        """Say that the job was stopped by its budget or deadline, and that what it returns was harvested.

        Raises:
            ValueError: ``why`` is neither a BudgetExceeded nor a DeadlineExceeded.
        """
        if why.cause not in {Cause.BUDGET, Cause.DEADLINE}:
            raise ValueError(f"job {self.key}: only a budget or a deadline cuts a job short, not {why!r}")
        self.ended_early = why

    def publish(self, event: Event) -> None:
        """Show ``event`` to all observers."""
        self._record.publish(event)

    def note(self, text: str) -> None:
        """Show a line of text to all observers, and keep it in the journal."""
        self._record.note({"event": "note", "key": self.key, "text": text})
        self.publish(Note(self.key, text))

    def capacity(self, resource: str, amount: float) -> None:
        """Keep in the journal how much there is of ``resource`` now, for those who watch."""
        self._record.note({"event": "capacity", "resource": resource, "capacity": amount})

    def retrying(self, model: str, error: CodetasteError, delay_s: float) -> None:
        """Say, and keep in the journal, that a call of ``model`` failed and is made again in ``delay_s``."""
        line: dict[str, Json] = {"event": "again", "key": self.key, "model": model}
        cause, text = error.cause, str(error)
        self._record.note({**line, "cause": cause.value, "error": text, "delay_s": round(delay_s, 3)})
        self.publish(CallRetrying(self.key, model, cause, text, delay_s))

    async def keep(self, text: str) -> str:
        """Store a long text once, durably, and return the digest it is fetched by."""
        return await self._record.blobs.keep(text)

    async def fetch(self, digest: str) -> str:
        """Return the text stored under ``digest``.

        Raises:
            JournalError: it is not there or damaged.
        """
        return await self._record.blobs.fetch(digest)
