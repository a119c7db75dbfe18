"""``Job``, its ``Outcome`` and ``Status``, and the ``JobContext`` that a running job works with.

A job is data: a key, a kind and parameters, needs, resources and a budget. The ``Handler`` of its kind runs
it. Its effects (model replies, tool results) are recorded under (key, fingerprint, name) and shared by all
its attempts and sessions: an attempt after a crash or a retry replays them and continues where the recording
ends.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio

from codetaste.errors import Cause, CodetasteError
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetPath, BudgetSnapshot, Cost
from codetaste.orchestration.events import CallRetrying
from codetaste.orchestration.journal.journal import Json, json_copy
from codetaste.orchestration.paid_call import PaidCall
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.reservation import Reservation
    from codetaste.orchestration.events import Event
    from codetaste.orchestration.journal.history import CallRecord
    from codetaste.orchestration.journal.recorder import RunRecorder
    from codetaste.orchestration.shortfall import Shortfall

__all__ = ["Handler", "Job", "JobContext", "Json", "Outcome", "PaidCall", "Status"]

_NO_RISK = Cost()


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work, as data that can be written as JSON or sent to another process.

    Attributes:
        key: the name of the job in the run.
        kind: selects the handler that runs the job, such as "infer.execute".
        budget: the path of the parent node, with limits. The scheduler creates its nodes, and a child node
            named by ``key`` with the job's own ``limits``.
        fingerprint: identifies everything that decides the result except the results of ``needs``, which
            the scheduler adds.
        parameters: what the handler works on: JSON, or a frozen dataclass of plain data.
        needs: keys of the jobs that must have ended with a result.
        resources: how much of each resource the job takes while it runs.
        lane: the fairness group (a model's id).
        title: the displayed name.
        group: the name under which the job is counted together with others.
        inputs: hashes of what ``fingerprint`` identifies, by name, so that a changed one can be named.
        costs_nothing: whether it runs even when the budget is used up.
        min_cost: the least that the job needs to be useful: its first call, at its cheapest.
        prerequisite_only: whether the job is useful only to the jobs that need it, and is skipped when none
            of them can run.
        limits: of the job alone.
        handler_limits: limits that the handler itself enforces, such as turns. They are no part of the
            fingerprint: a result that one of them cut is final until that limit is raised; then the job
            continues.
        leaves_to: the job whose ``limits`` get what this one leaves of its own, if it is in the session.
    """

    key: str
    kind: str
    budget: BudgetPath
    fingerprint: str
    parameters: Any = None
    needs: tuple[str, ...] = ()
    resources: Mapping[str, float] = field(default_factory=dict)
    lane: str = ""
    title: str = ""
    group: str = ""
    inputs: Mapping[str, str] = field(default_factory=dict)
    costs_nothing: bool = False
    min_cost: Cost | None = None
    prerequisite_only: bool = False
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    handler_limits: Mapping[str, int] = field(default_factory=dict)
    leaves_to: str = ""


class Status(StrEnum):
    """How a job ended. A job with any status but DONE may run again in a later session."""

    DONE = "done"
    FAILED = "failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"

    @property
    def by_limit(self) -> bool:
        """Whether a budget or a time limit ended the job."""
        return self in {Status.BUDGET_EXCEEDED, Status.TIMEOUT}


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended, what it returned (``None`` if nothing), why it did not finish, and its cost.

    ``attempts`` counts all started attempts, earlier sessions included; ``resumed`` marks the result of an
    earlier session. ``error`` is one line, ``traceback`` is set for faults of the program. ``shortfall`` says
    why a job that is done did not end well.
    """

    key: str
    status: Status
    value: Json = None
    cause: Cause | None = None
    error: str = ""
    attempts: int = 0
    cost: BudgetSnapshot = field(default_factory=BudgetSnapshot)
    resumed: bool = False
    traceback: str = ""
    shortfall: Shortfall | None = None

    @property
    def ended_well(self) -> bool:
        """Whether the job is done, and no limit, fault or mistake of its agent ended it."""
        return self.status is Status.DONE and self.shortfall is None

    @property
    def usable(self) -> bool:
        """Whether jobs that need this one can run: it is done, or it ended early with a value."""
        return self.status is Status.DONE or (self.status.by_limit and self.value is not None)


class JobContext:
    """Interface of a running job to its run. ``needs`` holds the results of the jobs it needs, by key."""

    def __init__(
        self,
        *,
        key: str,
        attempt: int,
        fingerprint: str,
        budget: Budget,
        needs: Mapping[str, Json],
        record: RunRecorder,
    ) -> None:
        self.key, self.attempt, self.budget, self.needs = key, attempt, budget, needs
        self.fingerprint = fingerprint
        self.early_end: CodetasteError | None = None
        self.limits_reached: set[str] = set()
        self.shortfall: Shortfall | None = None
        self._record = record
        self._under_way: set[str] = set()

    def is_recorded(self, name: str) -> bool:
        """Whether effect ``name`` is in the journal."""
        return name in self._record.effects(self.key, self.fingerprint)

    async def effect(self, name: str, do: Callable[[], Awaitable[Json]]) -> Json:
        """Return the recorded effect ``name``, or run ``do`` and return its value once the record is durable.

        Raises:
            ValueError: the same effect is already under way in this job.
            StorageFull: the effect was done but could not be recorded.
        """
        effects = self._record.effects(self.key, self.fingerprint)
        if name in effects:
            return json_copy(effects[name])
        if name in self._under_way:
            raise ValueError(f"job {self.key}: effect {name} is already under way; use a different name")
        self._under_way.add(name)
        try:
            value = json_copy(await do())
            await self.record(name, value)
        finally:
            self._under_way.discard(name)
        return json_copy(value)

    async def record(self, name: str, value: Json) -> None:
        """Record effect ``name``, which has already happened; durable on return.

        Raises:
            StorageFull: it could not be recorded.
        """
        await self._record.write(
            {
                "event": "effect",
                "key": self.key,
                "fingerprint": self.fingerprint,
                "name": name,
                "value": json_copy(value),
            }
        )

    def recorded(self, name: str) -> Json:
        """Return the recorded effect ``name``; see ``is_recorded``."""
        return json_copy(self._record.effects(self.key, self.fingerprint)[name])

    def unsettled_calls(self, name: str) -> tuple[PaidCall, ...]:
        """Return the calls for effect ``name`` that were sent and whose cost is unknown.

        They are charged as unknown. Look them up at the provider and settle them, oldest first.
        """
        reservations, root = self._record.reservations, self.budget.chain[0]
        unsettled: list[PaidCall] = []
        for call in self._record.history.unsettled_calls(self.key, self.fingerprint, name):
            reservation = reservations.get(call.call)
            if reservation is None:
                reservation = reservations[call.call] = root.find(call.path).adopt(call.granted)
            if not reservation.open:
                unsettled.append(PaidCall(self._record, self.key, call.call, reservation, call.note))
        return tuple(unsettled)

    def dispute(self, name: str, call: str) -> None:
        """Journal that ``call`` exceeded its reservation, so that the run does not call ``name`` again."""
        self._record.queue({"event": "disputed", "name": name, "call": call})

    def disputed(self, name: str) -> CallRecord | None:
        """Return the call for which ``name`` must not be called again in this run, None if there is none."""
        return self._record.history.disputed.get(name)

    def unsettled_effects(self) -> tuple[str, ...]:
        """Return the effects that have unsettled calls, those in flight included, in no order."""
        return self._record.history.unsettled_effects(self.key, self.fingerprint)

    async def hold(self, wanted: Cost, least: Cost | None = None, *, risk: Cost = _NO_RISK) -> Reservation:
        """Reserve money for one call, only in memory: pass it to ``start_call``, or release it.

        Grants less than ``wanted``, but at least ``least``, if no more is left. Waiting for money in flight
        elsewhere stops the working clock. ``risk``: see ``Budget.reserve``.

        Raises:
            BudgetExceeded: it can never fit; nothing was charged.
        """
        wait = Wait(WaitReason.BUDGET)
        return await self.budget.reserve(wanted, least, risk=risk, while_waiting=lambda: self.waiting(wait))

    def try_hold(
        self, wanted: Cost, least: Cost | None = None, *, risk: Cost = _NO_RISK
    ) -> Reservation | None:
        """Reserve money like ``hold`` if that needs no waiting; return None otherwise.

        Raises:
            BudgetExceeded: it can never fit; nothing was charged.
        """
        return self.budget.try_reserve(wanted, least, risk=risk)

    async def start_call(self, name: str, reservation: Reservation, note: Json = None) -> PaidCall:
        """Turn a reservation from ``hold`` into the call that gives effect ``name``; durable on return.

        ``note`` is stored with the reservation.

        Raises:
            StorageFull: the reservation could not be recorded and was released; do not make the call.
        """
        effect = (self.key, self.fingerprint, name)
        return await PaidCall.start(self._record, effect, reservation, note)

    @contextmanager
    def waiting(self, wait: Wait, *, keep_clock_running: bool = False) -> Iterator[None]:
        """Report that the job waits, and stop its working clock.

        ``keep_clock_running`` lets the clock run: time lost to an outage counts as the job's own.
        """
        started_s = anyio.current_time()
        self._record.start_wait(self.key, wait)
        try:
            with nullcontext() if keep_clock_running else self.budget.waiting():
                yield
        finally:
            self._record.end_wait(self.key, wait, anyio.current_time() - started_s)

    def cleanup_scope(self) -> AbstractContextManager[anyio.CancelScope]:
        """Open a shielded cancel scope for clean-up, bounded by the run's grace period.

        The second stop request of the user shortens the grace period.
        """
        return self._record.grace.scope()

    def end_early(self, reason: CodetasteError) -> None:
        """Record that the budget or a deadline stopped the job, and that its value is a partial result.

        Raises:
            ValueError: ``reason`` is neither a BudgetExceeded nor a DeadlineExceeded.
        """
        if reason.cause not in {Cause.BUDGET, Cause.DEADLINE}:
            raise ValueError(f"job {self.key}: only a budget or a deadline ends a job early, not {reason!r}")
        self.early_end = reason

    def limit_reached(self, name: str) -> None:
        """Record that the job's value was cut by ``name`` of its ``handler_limits``."""
        self.limits_reached.add(name)

    def fall_short(self, shortfall: Shortfall) -> None:
        """Record that the job has a result, but did not end well."""
        self.shortfall = shortfall

    def publish(self, event: Event) -> None:
        """Deliver ``event`` to all observers."""
        self._record.publish(event)

    def note(self, text: str) -> None:
        """Show a line of text to all observers and write it to the journal."""
        self._record.note_text(self.key, text)

    def note_capacity(self, resource: str, amount: float) -> None:
        """Journal the current capacity of ``resource``, for ``codetaste status``."""
        self._record.note({"event": "capacity", "resource": resource, "capacity": amount})

    def note_retry(self, model: str, error: CodetasteError, delay_s: float) -> None:
        """Publish and journal that a call of ``model`` failed and is repeated in ``delay_s`` seconds."""
        cause, text = error.cause, str(error)
        self._record.note(
            {
                "event": "call_retry",
                "key": self.key,
                "model": model,
                "cause": cause.value,
                "error": text,
                "delay_s": round(delay_s, 3),
            }
        )
        self.publish(CallRetrying(self.key, model, cause, text, delay_s))

    async def store_text(self, text: str) -> str:
        """Store a long text once, durably, and return the digest that ``load_text`` takes."""
        return await self._record.blobs.store(text)

    async def load_text(self, digest: str) -> str:
        """Return the text stored under ``digest``.

        Raises:
            JournalError: the text is missing or damaged.
        """
        return await self._record.blobs.load(digest)


Handler: TypeAlias = "Callable[[Job, JobContext], Awaitable[Json]]"
"""Runs the jobs of one kind and returns their values."""
