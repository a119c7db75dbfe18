"""Times, waits, causes, tokens, prices and capacities of a run, folded from its journal for status output.

States, calls and money are folded by ``orchestration/journal/history.py``, so that status and resume always
agree.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from codetaste.llm.messages import Usage
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.status.job_clock import JobClock, JobSeconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.orchestration.journal.lines import (
        CallRetryLine,
        CapacityLine,
        ClocksLine,
        DrainLine,
        EffectLine,
        EndedLine,
        JobLine,
        LimitsAppliedLine,
        NoteLine,
        PriceLine,
        ReservedLine,
        ResumedLine,
        RetryLine,
        SessionFailedLine,
        SessionLine,
        SettledLine,
        StartedLine,
        WaitEndedLine,
        WaitStartedLine,
    )

RATE_WINDOW_S = 300.0
_YEAR_9999 = 253_370_764_800.0
MAX_NOTES = 20


@dataclass(slots=True)
class JobTimes:
    """Times and waits of one job. ``since`` is the start of its state; times are seconds of the epoch."""

    since: float = 0.0
    cause: str | None = None
    retry_delay_s: float = 0.0
    waits: dict[Wait, list[float]] = field(default_factory=dict)
    waited_s: Counter[Wait] = field(default_factory=Counter)
    retries: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Retries by model ("" for the job itself) and cause."""
    resources: Mapping[str, float] = field(default_factory=dict)
    notes: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_NOTES))
    clock: JobClock = field(default_factory=JobClock)


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """One session of the run: its start and its process."""

    at: float
    pid: int
    host: str


@dataclass(slots=True)
class CallTimes:
    """When a call was reserved and answered, and its tokens by kind."""

    sent_at: float
    answered_at: float | None = None
    usage: Mapping[str, int] = field(default_factory=dict)


class JournalView:
    """The view; ``apply`` takes the journal's lines in order."""

    def __init__(self) -> None:
        self.jobs: dict[str, JobTimes] = {}
        self.calls: dict[str, CallTimes] = {}
        self.sessions: list[SessionInfo] = []
        self.prices: dict[str, PriceLine] = {}
        self.limits: dict[str, Any] = {}
        """The limits in force, by config key."""
        self.capacities: dict[str, float] = {}
        self.stop_reason = ""
        self.error = ""
        """What ended the last session before its jobs had ended."""
        self.clock_at = 0.0
        self.last_at = 0.0
        self._before = 0.0
        """The time of the line before the last one."""
        self.recent_settlements: deque[tuple[float, Decimal]] = deque()
        """Recently settled costs, with their times."""

    def apply(self, line: Mapping[str, Any]) -> None:
        """Apply one more line; an unknown event only advances the time."""
        at = line.get("t")
        self._before = self.last_at
        self.last_at = at if isinstance(at, int | float) and 0 <= at < _YEAR_9999 else self.last_at
        fold = self._FOLDS.get(line["event"])
        if fold is not None:
            fold(self, line)

    def job(self, key: str) -> JobTimes:
        """Return the entry of job ``key``, which is created if necessary."""
        times = self.jobs.get(key)
        if times is None:
            times = self.jobs[key] = JobTimes(self.last_at)
        return times

    def seconds(self, key: str, until: float) -> JobSeconds:
        """Return the seconds of job ``key`` by what it did, up to the time ``until``."""
        clock = self.job(key).clock
        return clock.seconds(until, self._ready_at(clock))

    def _ready_at(self, clock: JobClock) -> float:
        """Return when the last job that a job needs had ended; now while one of them has not."""
        needed = [self.jobs[key].clock for key in clock.needs if key in self.jobs]
        return max([0.0, *(self.last_at if each.active else each.ended_at or 0.0 for each in needed)])

    def settled_since(self, at: float) -> Decimal:
        """Return the dollars settled since the time ``at``, which must be within the window."""
        return sum((usd for when, usd in self.recent_settlements if when >= at), Decimal(0))

    def _session(self, line: SessionLine) -> None:
        self.sessions.append(SessionInfo(self.last_at, line.get("pid", 0), str(line.get("host", ""))))
        self.stop_reason, self.error, self.clock_at = "", "", self.last_at
        self.capacities.clear()
        self.limits = {}
        ready_at = [self._ready_at(job.clock) for job in self.jobs.values()]
        for job, at in zip(self.jobs.values(), ready_at, strict=True):
            job.waits.clear()
            job.clock.stop(self._before, at)

    def _job(self, line: JobLine) -> None:
        job = self.job(line["key"])
        job.since = self.last_at
        job.resources = line.get("resources") or {}
        job.clock.queue(self.last_at, tuple(line["needs"]))

    def _started(self, line: StartedLine) -> None:
        job = self.job(line["key"])
        job.since, job.cause = self.last_at, None
        job.clock.start(self.last_at, self._ready_at(job.clock))

    def _retry(self, line: RetryLine) -> None:
        job = self.job(line["key"])
        job.since, job.retry_delay_s, job.cause = self.last_at, line["delay_s"], line["cause"]
        job.retries["", line["cause"]] += 1
        job.waits.clear()
        job.clock.retry(self.last_at)

    def _call_retry(self, line: CallRetryLine) -> None:
        self.job(line["key"]).retries[line["model"], line["cause"]] += 1

    def _wait_started(self, line: WaitStartedLine) -> None:
        wait = Wait(WaitReason(line["reason"]), line["detail"], line["delay_s"])
        job = self.job(line["key"])
        job.waits.setdefault(wait, []).append(self.last_at)
        job.clock.begin_wait(self.last_at)

    def _wait_ended(self, line: WaitEndedLine) -> None:
        job, wait = self.job(line["key"]), Wait(WaitReason(line["reason"]), line["detail"])
        job.clock.end_wait(self.last_at)
        job.waited_s[wait] += line["waited_s"]  # type: ignore[assignment]  # seconds are floats
        begun = job.waits.get(wait, [])
        if begun:
            begun.pop(0)
        if not begun:
            job.waits.pop(wait, None)

    def _ended(self, line: EndedLine) -> None:
        job = self.job(line["key"])
        job.since, job.cause = self.last_at, line.get("cause")
        job.waits.clear()
        job.clock.end(self.last_at)

    def _resumed(self, line: ResumedLine) -> None:
        job = self.job(line["key"])
        job.since = self.last_at
        job.clock.stop(self.last_at, self._ready_at(job.clock))

    def _note(self, line: NoteLine) -> None:
        if line["key"]:
            self.job(line["key"]).notes.append(str(line["text"]))

    def _reserved(self, line: ReservedLine) -> None:
        self.calls[line["call"]] = CallTimes(self.last_at)

    def _settled(self, line: SettledLine) -> None:
        self._note_answer(line["call"], line.get("value"))
        self.recent_settlements.append((self.last_at, Decimal(line["usd"])))
        while self.recent_settlements[0][0] < self.last_at - RATE_WINDOW_S:
            self.recent_settlements.popleft()

    def _effect(self, line: EffectLine) -> None:
        value = line["value"]
        if isinstance(value, dict) and isinstance(call := value.get("call"), str):
            self._note_answer(call, value)  # a reply of unknown cost

    def _note_answer(self, call: str, value: Any) -> None:  # noqa: ANN401 - JSON
        times = self.calls.get(call)
        if times is not None:
            times.answered_at = self.last_at
            times.usage = usage_in(value)

    def _price(self, line: PriceLine) -> None:
        self.prices[str(line["model"])] = line

    def _limits_applied(self, line: LimitsAppliedLine) -> None:
        self.limits = dict(line["limits"])
        for name, value in self.limits.items():
            if (resource := _resource(name)) and value is not None:
                self.capacities[resource] = float(value)

    def _capacity(self, line: CapacityLine) -> None:
        self.capacities[str(line["resource"])] = float(line["capacity"])

    def _clocks(self, _line: ClocksLine) -> None:
        self.clock_at = self.last_at

    def _drain(self, line: DrainLine) -> None:
        self.stop_reason = str(line["reason"])

    def _session_failed(self, line: SessionFailedLine) -> None:
        self.error = str(line["error"])

    _FOLDS: ClassVar[dict[str, Callable[[JournalView, Any], None]]] = {
        "session": _session,
        "job": _job,
        "started": _started,
        "retry": _retry,
        "call_retry": _call_retry,
        "wait_started": _wait_started,
        "wait_ended": _wait_ended,
        "ended": _ended,
        "resumed": _resumed,
        "note": _note,
        "reserved": _reserved,
        "settled": _settled,
        "effect": _effect,
        "price": _price,
        "limits_applied": _limits_applied,
        "capacity": _capacity,
        "clocks": _clocks,
        "drain": _drain,
        "session_failed": _session_failed,
    }


def _resource(name: str) -> str:
    """Return the resource whose capacity the limit ``name`` sets; "" for money and time."""
    if name.startswith("models."):
        return f"model {name.removeprefix('models.').removesuffix('.max_concurrency')}"
    return {"run.concurrency": "jobs", "sandbox.max": "sandbox"}.get(name, "")


def usage_in(value: Any) -> dict[str, int]:  # noqa: ANN401 - JSON
    """Return the tokens by kind in the record of a reply; empty where the record has none."""
    if not isinstance(value, dict):
        return {}
    usage = value.get("usage")
    if "usage" not in value and isinstance(value.get("reply"), dict):
        usage = value["reply"].get("usage")  # an earlier version wrote it only there
    if not isinstance(usage, dict):
        return {}
    return {kind: usage[kind] for kind in Usage.KINDS if type(usage.get(kind)) is int and usage[kind] >= 0}
