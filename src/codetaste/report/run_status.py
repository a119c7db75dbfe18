"""What a run looks like at one moment: its money and time, its models, its jobs and what they wait for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.orchestration.history import Call
    from codetaste.report.sights import SessionSight


@dataclass(slots=True)
class Spend:
    """US dollars: settled, unknown (perhaps billed), and in flight now; and how many calls of each."""

    settled_usd: Decimal = Decimal(0)
    unknown_usd: Decimal = Decimal(0)
    in_flight_usd: Decimal = Decimal(0)
    calls: Counter[str] = field(default_factory=Counter)

    def add(self, call: Call, state: str) -> None:
        """Add one call in ``state`` (settled, unknown, in_flight or released)."""
        self.calls[state] += 1
        if state == "settled":
            self.settled_usd += call.cost.usd
        elif state == "unknown":
            self.unknown_usd += call.granted.usd
        elif state == "in_flight":
            self.in_flight_usd += call.granted.usd


@dataclass(frozen=True, slots=True)
class Wait:
    """What is waited for, and since when (seconds of the epoch)."""

    what: str
    since: float


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job. ``needs`` are those that have not ended; ``retries`` counts by cause, calls' included."""

    key: str
    model: str
    state: str
    since: float
    attempts: int
    spend: Spend
    waits: tuple[Wait, ...]
    needs: tuple[str, ...]
    retries: Mapping[str, int]
    cause: str | None
    error: str


@dataclass(slots=True)
class ModelStatus:
    """One model by its id: what it cost, how often it was asked again and why, where its price is from."""

    id: str
    spend: Spend = field(default_factory=Spend)
    tokens: Counter[str] = field(default_factory=Counter)
    """Of settled calls, by kind; "total" is all but reasoning, which is part of output."""
    retries: Counter[str] = field(default_factory=Counter)
    price_source: str = ""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much there may be at once of "jobs", "sandbox", "cpu" or "model ID", and how much of it is taken.

    ``waiting`` counts those who wait for it: a queued job for the first of which there is too little.
    """

    resource: str
    limit: float
    taken: float
    waiting: int


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run at the moment ``at``. ``owner`` is the process at work on it, "" for none.

    ``rate_usd`` is what was settled a minute of late. Times are seconds of the epoch.
    """

    directory: Path
    at: float
    owner: str
    stopping: str
    sessions: tuple[SessionSight, ...]
    spend: Spend
    limit_usd: Decimal | None
    rate_usd: Decimal
    used_s: float
    limit_s: float | None
    models: tuple[ModelStatus, ...]
    capacities: tuple[Capacity, ...]
    limits: Mapping[str, Any]
    """Those in force, by the config's keys."""
    retries: Mapping[str, int]
    jobs: tuple[JobStatus, ...]
    products: tuple[Path, ...]
