"""State of a run folded from its journal lines: results, effects, calls and money.

The same fold serves a resume (all lines of earlier sessions), the running session (its own lines as it writes
them) and ``codetaste status`` (the journal of a run that another process owns).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from codetaste.errors import JournalError
from codetaste.orchestration.budget.cost import BudgetLimits, Cost, PriorCharges
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from codetaste.orchestration.journal import lines
    from codetaste.orchestration.journal.journal import Json

_K = TypeVar("_K")


class JobState(StrEnum):
    """State of a job: on its way, or how it ended (the values of ``Status``)."""

    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    INTERRUPTED = "interrupted"
    DONE = "done"
    FAILED = "failed"
    BUDGET_EXCEEDED = "budget_exceeded"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"


LIVE_STATES = frozenset({JobState.QUEUED, JobState.RUNNING, JobState.RETRYING})
"""States of a job that its process has not ended; without the process the job is interrupted."""
_RECORDED_STATES = frozenset({JobState.DONE, JobState.BUDGET_EXCEEDED, JobState.TIMEOUT})


@dataclass(slots=True)
class CallRecord:
    """One reserved call."""

    call: str
    key: str
    fingerprint: str
    effect: str
    path: tuple[str, ...]
    granted: Cost
    note: Json = None
    state: CallState = CallState.IN_FLIGHT
    cost: Cost = field(default_factory=Cost)
    session: int = 0


@dataclass(frozen=True, slots=True)
class RecordedEnd:
    """How an attempt at (key, fingerprint) ended.

    ``limits`` are those of the budget chain at that time, ``reached`` those of the handler that cut the
    value.
    """

    status: JobState
    value: Json
    cause: str | None
    error: str
    limits: Json
    reached: Mapping[str, int] = field(default_factory=dict)
    shortfall: Shortfall | None = None
    inputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class JobHistory:
    """One job over all sessions."""

    title: str = ""
    lane: str = ""
    needs: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    state: JobState = JobState.QUEUED
    attempts: int = 0
    error: str = ""
    shortfall: Shortfall | None = None
    retries: Counter[str] = field(default_factory=Counter)
    effects: dict[str, dict[str, Json]] = field(default_factory=dict)
    recorded_ends: dict[str, RecordedEnd] = field(default_factory=dict)

    @property
    def failed_with_result(self) -> bool:
        """Whether the job has a result, but ended by a fault or a mistake, not by a limit."""
        return self.state is JobState.DONE and self.shortfall is not None and not self.shortfall.by_limit


class History:
    """State after all lines read so far; ``limits`` are the latest limits of the whole run."""

    def __init__(self, lines: Iterable[Mapping[str, Any]] = ()) -> None:
        self.sessions = 0
        self.limits = BudgetLimits()
        self.draining = False
        self.jobs: defaultdict[str, JobHistory] = defaultdict(JobHistory)
        self.calls: dict[str, CallRecord] = {}
        self.disputed: dict[str, CallRecord] = {}
        """The first call that exceeded its reservation, by the name of what is not called again."""
        self.clocks: dict[tuple[str, ...], tuple[float, float]] = {}
        # Calls sent and not settled: (job key, fingerprint) → effect → call.
        self._open: dict[tuple[str, str], dict[str, dict[str, CallRecord]]] = {}
        self._serials: Counter[str] = Counter()
        for line in lines:
            self.apply(line)

    def apply(self, line: Mapping[str, Any]) -> None:
        """Fold one more line into the state; an unknown event changes nothing.

        Raises:
            JournalError: the line is malformed.
        """
        fold = self._FOLDS.get(line["event"])
        if fold is None:
            return
        try:
            fold(self, line)
        except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
            raise JournalError(
                f"a damaged {line['event']!r} line in the journal: {str(line)[:200]}"
            ) from error

    def job(self, key: str) -> JobHistory:
        """Return the history of job ``key``, created empty if there is none."""
        return self.jobs[key]

    def next_call_name(self, key: str, effect: str) -> str:
        """Return the name of the next call made for ``effect``, unique in the run."""
        stem = f"{key}/{effect}"
        return f"{stem}#{self._serials[stem] + 1}"

    def unsettled_calls(self, key: str, fingerprint: str, effect: str) -> tuple[CallRecord, ...]:
        """Return the calls for ``effect`` that were neither settled nor released, oldest first."""
        return tuple(self._open.get((key, fingerprint), {}).get(effect, {}).values())

    def unsettled_effects(self, key: str, fingerprint: str) -> tuple[str, ...]:
        """Return the effects of a job that have calls neither settled nor released."""
        return tuple(self._open.get((key, fingerprint), {}))

    def has_progress(self, key: str, fingerprint: str) -> bool:
        """Whether the job has effects or unsettled calls to continue from."""
        return bool(self.job(key).effects.get(fingerprint)) or (key, fingerprint) in self._open

    def charges(self, by: Callable[[CallRecord], _K]) -> tuple[dict[_K, Cost], dict[_K, Cost]]:
        """Return settled and unknown costs (in flight counts as unknown), each summed by ``by(call)``."""
        settled: dict[_K, Cost] = {}
        unknown: dict[_K, Cost] = {}
        for call in self.calls.values():
            key = by(call)
            if call.state is CallState.SETTLED:
                settled[key] = settled.get(key, Cost()) + call.cost
            elif call.state is not CallState.RELEASED:
                unknown[key] = unknown.get(key, Cost()) + call.granted
        return settled, unknown

    def spent_usd_by_job(self) -> dict[str, Decimal]:
        """Return the cost of each job's calls by its key, US dollars; unknown costs count."""
        settled, unknown = self.charges(lambda call: call.key)
        costs = {key: settled.get(key, Cost()) + unknown.get(key, Cost()) for key in {*settled, *unknown}}
        return {key: cost.usd for key, cost in costs.items()}

    def prior_charges(self) -> dict[tuple[str, ...], PriorCharges]:
        """Return the charges and clocks of each path, from which a new session starts."""
        settled, unknown = self.charges(lambda call: call.path)
        return {
            path: PriorCharges(
                settled.get(path, Cost()), unknown.get(path, Cost()), *self.clocks.get(path, (0.0, 0.0))
            )
            for path in {*settled, *unknown, *self.clocks}
        }

    def _session(self, line: lines.SessionLine) -> None:
        self.sessions += 1
        self.limits = _limits(line.get("limits"))
        self.draining = False
        for job in self.jobs.values():
            if job.state in LIVE_STATES:
                job.state = JobState.INTERRUPTED

    def _limits(self, line: lines.LimitsLine) -> None:
        self.limits = _limits(line["limits"])

    def _job(self, line: lines.JobLine) -> None:
        job = self.job(line["key"])
        job.title, job.lane, job.needs = line["title"], line["lane"], tuple(line["needs"])
        job.path, job.state = tuple(line["path"]), JobState.QUEUED

    def _rerun(self, line: lines.RerunLine) -> None:
        """Discard what was recorded of the job; its costs still count."""
        job = self.job(line["key"])
        job.effects.clear()
        job.recorded_ends.clear()
        for at in [at for at in self._open if at[0] == line["key"]]:
            del self._open[at]

    def _started(self, line: lines.StartedLine) -> None:
        job = self.job(line["key"])
        job.state, job.attempts = JobState.RUNNING, line["attempt"]

    def _retry(self, line: lines.RetryLine) -> None:
        job = self.job(line["key"])
        job.state, job.error = JobState.RETRYING, line["error"]
        job.retries[line["cause"]] += 1

    def _resumed(self, line: lines.ResumedLine) -> None:
        self.job(line["key"]).state = JobState(line["status"])

    def _ended(self, line: lines.EndedLine) -> None:
        key, fingerprint, status = line["key"], line["fingerprint"], JobState(line["status"])
        job = self.job(key)
        job.state, job.error = status, line.get("error", "")
        job.shortfall = Shortfall.from_json(line["shortfall"]) if "shortfall" in line else None
        if status in _RECORDED_STATES:
            value, cause = line.get("value"), line.get("cause")
            reached = {str(name): int(limit) for name, limit in line.get("reached", {}).items()}
            job.recorded_ends[fingerprint] = RecordedEnd(
                status,
                value,
                cause,
                job.error,
                line.get("limits"),
                reached,
                job.shortfall,
                line.get("inputs", {}),
            )
        if status is JobState.DONE and "reached" not in line:
            job.effects.pop(fingerprint, None)

    def _effect(self, line: lines.EffectLine) -> None:
        effects = self.job(line["key"]).effects.setdefault(line["fingerprint"], {})
        effects.setdefault(line["name"], line["value"])

    def _reserved(self, line: lines.ReservedLine) -> None:
        key, fingerprint, effect, name = line["key"], line["fingerprint"], line["effect"], line["call"]
        granted = Cost(Decimal(line["usd"]), line["tokens"])
        call = CallRecord(name, key, fingerprint, effect, tuple(line["path"]), granted, line.get("note"))
        if name in self.calls:
            raise ValueError(f"a second reservation of {name}")
        call.session = self.sessions
        self.calls[name] = call
        self._serials[f"{key}/{effect}"] += 1
        self._open.setdefault((key, fingerprint), {}).setdefault(effect, {})[name] = call

    def _settled(self, line: lines.SettledLine) -> None:
        call = self.calls[line["call"]]
        if call.state is CallState.SETTLED:
            return
        current = self._close(call)
        call.state, call.cost = CallState.SETTLED, Cost(Decimal(line["usd"]), line["tokens"])
        if "value" in line and current:
            effects = self.job(call.key).effects.setdefault(call.fingerprint, {})
            effects.setdefault(call.effect, line["value"])

    def _released(self, line: lines.ReleasedLine) -> None:
        call = self.calls[line["call"]]
        if call.state is not CallState.SETTLED:
            self._close(call)
            call.state = CallState.RELEASED

    def _unknown(self, line: lines.UnknownLine) -> None:
        call = self.calls[line["call"]]
        if call.state is CallState.IN_FLIGHT:
            call.state = CallState.UNKNOWN
            if "usd" in line:
                call.granted = Cost(Decimal(line["usd"]), line["tokens"])

    def _disputed(self, line: lines.DisputedLine) -> None:
        self.disputed.setdefault(line["name"], self.calls[line["call"]])

    def _clocks(self, line: lines.ClocksLine) -> None:
        for path, wall_s, working_s in line["nodes"]:
            self.clocks[tuple(path)] = (wall_s, working_s)

    def _drain(self, _line: lines.DrainLine) -> None:
        self.draining = True

    def _close(self, call: CallRecord) -> bool:
        """Remove ``call`` from the open calls; returns whether it was made since the job's last rerun."""
        effects = self._open.get((call.key, call.fingerprint), {})
        calls = effects.get(call.effect, {})
        current = calls.pop(call.call, None) is not None
        if current and not calls:
            del effects[call.effect]
        if current and not effects:
            del self._open[call.key, call.fingerprint]
        return current

    _FOLDS: ClassVar[dict[str, Callable[[History, Any], None]]] = {
        "session": _session,
        "limits": _limits,
        "job": _job,
        "rerun": _rerun,
        "started": _started,
        "retry": _retry,
        "resumed": _resumed,
        "ended": _ended,
        "effect": _effect,
        "reserved": _reserved,
        "settled": _settled,
        "released": _released,
        "unknown": _unknown,
        "disputed": _disputed,
        "clocks": _clocks,
        "drain": _drain,
    }


def _limits(row: Any) -> BudgetLimits:  # noqa: ANN401 - JSON
    """Read a row of limits: dollars, tokens, wall and working seconds; null is no limit."""
    usd, tokens, wall_s, working_s = row or (None,) * 4
    return BudgetLimits(None if usd is None else Decimal(usd), tokens, wall_s, working_s).check()
