"""The progress of a run, updated from its events and displayed by ``report/live/display.py``."""

from __future__ import annotations

import math
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.core.units import format_usd
from codetaste.orchestration.budget.cost import BudgetSnapshot
from codetaste.orchestration.events import (
    CallRetrying,
    Draining,
    JobFinished,
    JobQueued,
    JobRetrying,
    JobStarted,
    MoneyChanged,
    Note,
    ToolRaised,
    WaitEnded,
    WaitStarted,
)
from codetaste.orchestration.journal.history import JobState
from codetaste.report.ending import Ending, ending_in_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codetaste.orchestration.events import Event
    from codetaste.orchestration.shortfall import Shortfall
    from codetaste.orchestration.wait import Wait


@dataclass(slots=True)
class JobProgress:
    """The state of one job. ``waits`` has its current waits and their start (monotonic seconds)."""

    key: str
    title: str
    lane: str
    group: str = ""
    state: JobState = JobState.QUEUED
    started_s: float | None = None
    ended_s: float = 0.0
    last_note: str = ""
    error: str = ""
    shortfall: Shortfall | None = None
    time_left_s: Callable[[], float] = lambda: math.inf
    money: BudgetSnapshot = field(default_factory=BudgetSnapshot)
    waits: dict[Wait, float] = field(default_factory=dict)

    @property
    def ending(self) -> Ending | None:
        """How the job ended; None while it has not."""
        return ending_in_state(self.state, self.shortfall, self.error)


@dataclass(slots=True)
class RunProgress:
    """The state of a run, updated by ``observe``."""

    jobs: dict[str, JobProgress] = field(default_factory=dict)
    root: BudgetSnapshot = field(default_factory=BudgetSnapshot)
    earlier_wall_s: float = 0.0
    """Wall seconds of the run's earlier sessions, which count towards its time limit."""
    stop_reason: str = ""
    limiter_summary: Callable[[], Sequence[str]] = tuple
    """Returns one line for each concurrency limit: how many permits are in use."""
    clock: Callable[[], float] = time.monotonic
    tool_failures: Counter[str] = field(default_factory=Counter)
    """How often each tool raised an exception that is its own fault."""

    def tool_failure_notes(self) -> list[str]:
        """Return a line for each tool that failed."""
        return [
            f"the tool {name} failed {plural(count, 'time')} by its own fault; "
            "the logs of the jobs have the tracebacks"
            for name, count in sorted(self.tool_failures.items())
        ]

    def observe(self, event: Event) -> None:
        """Update the state from one event."""
        match event:
            case JobQueued():
                job = JobProgress(event.key, event.title or event.key, event.lane, event.group)
                self.jobs[event.key] = job
            case JobStarted():
                job = self._job(event.key)
                job.state, job.started_s = JobState.RUNNING, self.clock()
                job.time_left_s = event.time_left_s
            case JobRetrying():
                job = self._job(event.key)
                job.state, job.error = JobState.RETRYING, event.error
            case JobFinished():
                job = self._job(event.key)
                job.state, job.error = JobState(event.status), event.error
                job.money, job.shortfall, job.ended_s = event.cost, event.shortfall, self.clock()
                job.waits.clear()
            case MoneyChanged():
                self._update_money(event)
            case WaitStarted():
                self._job(event.key).waits[event.wait] = self.clock()
            case WaitEnded():
                self._job(event.key).waits.pop(event.wait, None)
            case Note() | CallRetrying() if event.key:
                self._job(event.key).last_note = event.text
            case ToolRaised() | Draining():
                self._update_run(event)

    def _update_run(self, event: ToolRaised | Draining) -> None:
        if isinstance(event, Draining):
            self.stop_reason = event.reason
        else:
            self.tool_failures[event.tool] += 1

    def _update_money(self, event: MoneyChanged) -> None:
        self.root = event.root
        if event.key:
            self._job(event.key).money = event.node

    def in_state(self, *states: JobState) -> list[JobProgress]:
        """Return the jobs in any of ``states``, in the order in which they were added."""
        return [job for job in self.jobs.values() if job.state in states]

    def counts(self) -> Counter[JobState]:
        """Return the number of jobs by state."""
        return Counter(job.state for job in self.jobs.values())

    def _job(self, key: str) -> JobProgress:
        return self.jobs.setdefault(key, JobProgress(key, key, ""))


def format_spend(money: BudgetSnapshot) -> str:
    """Format the settled, unknown and in-flight amounts, and the budget."""
    limit = f" of {format_usd(money.limits.usd)}" if money.limits.usd is not None else ""
    unknown = f" + {format_usd(money.unknown.usd)} unknown" if money.unknown.usd else ""
    flight = f" + {format_usd(money.reserved.usd)} in flight" if money.reserved.usd else ""
    return f"{format_usd(money.settled.usd)}{unknown}{flight}{limit}"
