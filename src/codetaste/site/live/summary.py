"""What the head of a run's page says: state, money, time, capacity, models, and what its jobs wait for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from codetaste.core.text import printable
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.journal.history import JobState
from codetaste.report.status.text import STATE_ORDER, format_counts, format_spend, format_tokens, shown_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.report.status.model import Capacity, JobStatus, ModelStatus, RunStatus
    from codetaste.site.live.followed_run import RunView

_MAX_TEXT = 500
_MAX_REASONS = 8


class LimitedFact(NamedTuple):
    """A line with its name; ``part`` is what is used of a limit, 0..1, None without one."""

    name: str
    text: str
    part: float | None = None


class ModelFacts(NamedTuple):
    """One model, as texts."""

    id: str
    spend: str
    calls: int
    tokens: str
    retries: str


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The head of a run's page. Counts are by name, in the order in which they are shown.

    ``problem`` is no fault if the run is ``waited_for``.
    """

    state: str
    problem: str = ""
    jobs: int = 0
    ended: int = 0
    facts: tuple[LimitedFact, ...] = ()
    states: tuple[tuple[str, int], ...] = ()
    waits: tuple[tuple[str, int], ...] = ()
    capacities: tuple[Capacity, ...] = ()
    models: tuple[ModelFacts, ...] = ()
    waited_for: bool = False


def summarise(view: RunView) -> RunSummary:
    """Return the summary of a run at its last reading."""
    status = view.status
    if status is None:
        return RunSummary("not begun", printable(view.problem, _MAX_TEXT), waited_for=view.waited_for)
    ended = sum(job.has_ended for job in status.jobs)
    return RunSummary(
        _state(status, ended),
        printable(view.problem or status.error, _MAX_TEXT),
        len(status.jobs),
        ended,
        tuple(_facts(status)),
        _count_states(status.jobs),
        _count_waits(status.jobs),
        status.capacities,
        tuple(map(_model, status.models)),
    )


def format_moment(at: float) -> str:
    """Return a time in seconds of the epoch as text; "" for one that no calendar has."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, OSError, ValueError):
        return ""


def _state(status: RunStatus, ended: int) -> str:
    if status.stop_reason:
        return f"stopping: {printable(status.stop_reason)}"
    if status.owner:
        return "running"
    return "ended" if ended == len(status.jobs) else "interrupted"


def _facts(status: RunStatus) -> list[LimitedFact]:
    """Return process, money and time, as ``codetaste status`` has them."""
    spend = status.spend
    money, part = format_spend(spend), None
    if status.limit_usd is not None:
        money += f" of {format_usd(status.limit_usd)}"
    if status.limit_usd:
        used = spend.settled_usd + spend.unknown_usd + spend.reserved_usd
        part = min(1.0, float(used / status.limit_usd))
    if status.usd_per_minute and status.owner:
        money += f" · {format_usd(status.usd_per_minute)} a minute recently"
    time = format_duration(status.used_s)
    if status.limit_s is not None:
        time += f" of {format_duration(status.limit_s)}"
    facts = [LimitedFact("Process", printable(status.owner))] if status.owner else []
    facts.append(LimitedFact("Money", money, part))
    facts.append(
        LimitedFact("Time", time, min(1.0, status.used_s / status.limit_s) if status.limit_s else None)
    )
    if status.sessions:
        last = f"the last since {format_moment(status.sessions[-1].at)}"
        facts.append(LimitedFact("Sessions", f"{len(status.sessions)}, {last}"))
    if status.retries:
        facts.append(LimitedFact("Retries", format_counts(status.retries)))
    return facts


def _model(model: ModelStatus) -> ModelFacts:
    tokens = format_tokens(model.tokens).removeprefix("tokens ") if model.tokens["total"] else ""
    calls = sum(model.spend.calls.values())
    return ModelFacts(
        printable(model.id), format_spend(model.spend), calls, tokens, format_counts(model.retries)
    )


def _count_states(jobs: Sequence[JobStatus]) -> tuple[tuple[str, int], ...]:
    counts = Counter(shown_state(job) for job in jobs)
    rank = {state: place for place, state in enumerate(STATE_ORDER, 1)}
    ordered = sorted(counts.items(), key=lambda item: (rank.get(item[0], 0), item[0]))
    return tuple((printable(state.replace("_", " ")), count) for state, count in ordered)


def _count_waits(jobs: Sequence[JobStatus]) -> tuple[tuple[str, int], ...]:
    """Return why jobs wait now, the most frequent reason first; needs of queued jobs are not counted."""
    counts = Counter(
        each.wait.text
        for job in jobs
        if job.waits and not (job.state is JobState.QUEUED and job.needs)
        for each in job.waits
    )
    return tuple((printable(text), count) for text, count in counts.most_common(_MAX_REASONS))
