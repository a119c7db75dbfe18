"""The status of a run at one moment: money, time, models, jobs, and the reasons for which jobs wait."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.orchestration.budget.node import CallState
from codetaste.report.ending import ENDED_STATES, Ending, ending_in_state

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.orchestration.journal.history import CallRecord, JobState
    from codetaste.orchestration.shortfall import Shortfall
    from codetaste.orchestration.wait import Wait
    from codetaste.report.status.journal_view import SessionInfo


@dataclass(slots=True)
class Spend:
    """Settled, unknown (possibly billed) and in-flight US dollars, and the number of calls of each."""

    settled_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, call: CallRecord, state: CallState) -> None:
        """Add one call in ``state``."""
        self.calls[state] += 1
        if state is CallState.SETTLED:
            self.settled_usd += call.cost.usd
        elif state is CallState.UNKNOWN:
            self.unknown_usd += call.granted.usd
        elif state is CallState.IN_FLIGHT:
            self.reserved_usd += call.granted.usd


@dataclass(frozen=True, slots=True)
class JobWait:
    """What a job waits for, and since when (seconds of the epoch)."""

    wait: Wait
    since: float


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job. ``needs``: required jobs not yet ended; ``retries``: of the job and its calls, by cause."""

    key: str
    model: str
    state: JobState
    since: float
    attempts: int
    spend: Spend
    waits: tuple[JobWait, ...]
    needs: tuple[str, ...]
    retries: Mapping[str, int]
    cause: str | None
    error: str
    shortfall: Shortfall | None = None
    """Why a job that is done did not end well."""
    took_s: float | None = None
    """Seconds of its attempts and between them; None if it has not ended, or never started."""

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended."""
        return self.state in ENDED_STATES

    @property
    def ending(self) -> Ending | None:
        """How the job ended; None while it has not."""
        return ending_in_state(self.state, self.shortfall, self.error)


@dataclass(slots=True)
class ModelStatus:
    """One model by its id: its cost, its retried calls by cause, and the source of its price."""

    id: str
    spend: Spend = field(default_factory=Spend)
    tokens: Counter[str] = field(default_factory=Counter)
    """Tokens of settled calls by kind; "total" excludes reasoning, which is part of output."""
    retries: Counter[str] = field(default_factory=Counter)
    price_source: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limit of "jobs", "sandbox", "cpu" or "model ID", and how much of it is in use.

    ``waiting`` counts the waiting jobs; a queued job counts for the first resource that it lacks.
    """

    resource: str
    limit: float
    in_use: float
    waiting: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run at the time ``at``. ``owner`` is the process that runs it, "" for none.

    ``error`` is what ended its last session before the jobs had ended, "" for nothing. ``usd_per_minute`` is
    the recent rate of settled costs. Times are seconds of the epoch.
    """

    directory: Path
    at: float
    owner: str
    stop_reason: str
    error: str
    sessions: tuple[SessionInfo, ...]
    spend: Spend
    limit_usd: Decimal | None
    usd_per_minute: Decimal
    used_s: float
    limit_s: float | None
    models: tuple[ModelStatus, ...]
    capacities: tuple[Capacity, ...]
    limits: Mapping[str, Any]
    """The limits in force, by config key."""
    retries: Mapping[str, int]
    jobs: tuple[JobStatus, ...]
    products: tuple[Path, ...]
