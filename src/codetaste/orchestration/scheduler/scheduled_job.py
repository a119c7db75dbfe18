"""A job in this session, and the end of one attempt at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from codetaste.errors import Cause
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.job import Job, Outcome
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.shortfall import Shortfall


@dataclass(slots=True, eq=False)
class ScheduledJob:
    """A job of this session and its progress. ``budget`` is the job's own node."""

    job: Job
    budget: Budget
    resources: Mapping[str, float]
    needs_left: int = 0
    dependents: list[ScheduledJob] = field(default_factory=list)
    fingerprint: str = ""
    failures: int = 0
    cancel_scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    waiting_since: float = 0.0
    outcome: Outcome | None = None
    digest: str = ""


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How an attempt ended; the scheduler decides afterwards whether to retry.

    ``limits_reached`` are those of the job's ``handler_limits`` that cut its value. ``resumed`` marks the end
    that an earlier session recorded. ``shortfall`` says why a job that is done did not end well.
    """

    status: Status
    value: Json = None
    cause: Cause | None = None
    error: str = ""
    traceback: str = ""
    retry_after_s: float | None = None
    final: bool = False
    limits_reached: frozenset[str] = frozenset()
    resumed: bool = False
    shortfall: Shortfall | None = None

    @classmethod
    def cancelled(cls, error: str) -> Self:
        """Return the end of an attempt that was cancelled."""
        return cls(Status.CANCELLED, cause=Cause.CANCELLED, error=error)

    @classmethod
    def of_outcome(cls, outcome: Outcome) -> Self:
        """Return the end that an earlier session recorded as ``outcome``."""
        return cls(
            outcome.status,
            outcome.value,
            outcome.cause,
            outcome.error,
            resumed=True,
            shortfall=outcome.shortfall,
        )
