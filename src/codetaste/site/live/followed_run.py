"""``FollowedRun``: a run whose journal is read as it grows, and what has changed since a reader's last look.

It reads the journal only when a page asks for it, and less often if reading and pages take more CPU time.
It takes no lock of the run and writes nothing.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from glob import escape
from typing import TYPE_CHECKING, Any

from codetaste.errors import ConfigError, JournalError
from codetaste.report.status.job_detail import job_details
from codetaste.report.status.status import RunMissing, RunWatcher
from codetaste.site.live.events import RunEvent, event_of_line

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.report.status.job_detail import JobDetail
    from codetaste.report.status.model import JobStatus, RunStatus

MAX_EVENTS = 1000
"""So many of the last events are kept."""
_MIN_INTERVAL_S = 1.0
_MAX_INTERVAL_S = 30.0
_MAX_SHARE, _MAX_WHOLE_SHARE = 0.004, 0.001
"""At most these shares of a CPU go into what each reading costs again, whatever the journal has more: the
jobs that have changed with the pages that are made of them, and the status of the whole run. That is made
less often: the sums of money in it may be older. Lines must be read once in any case."""
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class RunView:
    """A run at its last reading, as one reader needs it.

    Attributes:
        version: what to name at the next look. A reader that names another one gets everything.
        whole: whether ``jobs`` and ``events`` are all there are, not only those since the last look.
        status: None if the run has not begun, or its journal cannot be read.
        problem: why ``status`` is None or old, "" if it is neither.
        waited_for: whether that is because there is no run yet, which is no fault.
        jobs: in the order of the journal.
        events: in their order.
        next_s: seconds until another look is of use.
    """

    version: str
    whole: bool
    status: RunStatus | None
    problem: str
    waited_for: bool
    jobs: tuple[JobStatus, ...]
    events: tuple[RunEvent, ...]
    next_s: float


class FollowedRun:
    """One run. All methods may be called from any thread; ``poll`` and ``detail`` block.

    Attributes:
        path: as it was named; what it names need not exist yet.
        name: one part of the addresses of its pages.
        title: its name for people.
        ended_jobs: how many jobs had ended at the last reading.
    """

    def __init__(self, path: Path, name: str, title: str) -> None:
        self.path, self.name, self.title = path, name, title
        self.ended_jobs = 0
        self._reading = threading.Lock()
        """Held while the journal is read, which may take long."""
        self._lock = threading.Lock()
        """Held for a moment: while what was read is published or looked at."""
        self._watcher: RunWatcher | None = None
        self._replaced = 0
        self._status: RunStatus | None = None
        self._problem = ""
        self._waited_for = False
        self._read_at, self._interval_s = -_MAX_INTERVAL_S, _MIN_INTERVAL_S
        self._pages_cpu_s = 0.0
        self._whole_at, self._whole_interval_s = -_MAX_INTERVAL_S, 0.0
        self._partial = False
        """Whether lines were read since the status of the whole run."""
        self._new_events: deque[RunEvent] = deque(maxlen=MAX_EVENTS)
        self._forget()

    def _forget(self) -> None:
        self._epoch, self._version = secrets.token_hex(4), 0
        self._changed: dict[str, int] = {}
        self._jobs: dict[str, JobStatus] = {}
        self._events: deque[tuple[int, RunEvent]] = deque(maxlen=MAX_EVENTS)

    @property
    def is_due(self) -> bool:
        """Whether it is time to read the journal on."""
        return time.monotonic() >= self._read_at + self._interval_s

    @property
    def version(self) -> str:
        """The version of the last reading that found something new."""
        return f"{self._epoch}-{self._version}"

    def poll(self) -> None:
        """Read the journal on if it is time for that."""
        with self._reading:
            if self.is_due:
                self._read_on()

    def view(self, version: str = "") -> RunView:
        """Return what has changed since ``version``, as of the last reading."""
        with self._lock:
            epoch, _, number = version.partition("-")
            known = epoch == self._epoch and number.isdecimal() and len(number) <= _MAX_DIGITS
            since = int(number) if known else -1
            jobs = tuple(job for key, job in self._jobs.items() if self._changed[key] > since)
            events = tuple(event for at, event in self._events if at > since)
            return RunView(
                self.version,
                not known,
                self._status,
                self._problem,
                self._waited_for,
                jobs,
                events,
                self._interval_s,
            )

    def detail(self, key: str) -> JobDetail | None:
        """Return what is known of one job; None if there is no such job."""
        with self._reading:
            if self._watcher is None or self._status is None or key not in self._jobs:
                return None
            return job_details(self._watcher, self._status, escape(key))[0]

    def charge(self, cpu_s: float) -> None:
        """Count what a page of the run has cost, in seconds of a CPU: the next reading is the later."""
        with self._lock:
            self._pages_cpu_s += cpu_s

    def _read_on(self) -> None:
        began, problem, status, whole_s = time.thread_time(), "", self._status, 0.0
        waited_for = False
        try:
            if self._watcher is None:
                self._watcher = RunWatcher(self.path, self._observe)
            grown = self._watcher.read_on()
            began = time.thread_time() if grown else began
            self._partial |= grown
            # Of a run that no process works on, there is nothing new unless its journal grows.
            if self._partial or status is None or status.owner or self._problem:
                status = self._with_changed_jobs(self._watcher, status)
                if status is None:
                    status, whole_s = self._whole_status(self._watcher)
        except (ConfigError, JournalError) as error:
            problem, waited_for = str(error), isinstance(error, RunMissing)
            if self._watcher is not None and (problem != self._problem or self._new_events):
                status = self._watcher.status()  # of a damaged journal, what is before the damage
        with self._lock:
            self._waited_for = waited_for
            if status is not self._status or problem != self._problem or self._new_events:
                self._publish(status, problem)
            # The pages that are made of this reading will cost about as much as those of the last one.
            self._interval_s = _interval_s(
                time.thread_time() - began - whole_s + self._pages_cpu_s, _MAX_SHARE
            )
            self._pages_cpu_s = 0.0
            self._read_at = time.monotonic()

    def _with_changed_jobs(self, watcher: RunWatcher, status: RunStatus | None) -> RunStatus | None:
        """Return the last status with the jobs that have changed; None if it is time for a whole one."""
        if status is None or self._problem or time.monotonic() >= self._whole_at + self._whole_interval_s:
            return None
        changed = watcher.changed_jobs()
        if not changed:
            return None if changed is None else status
        jobs = {job.key: job for job in (*status.jobs, *changed)}
        return replace(status, at=time.time(), jobs=tuple(jobs.values()))

    def _whole_status(self, watcher: RunWatcher) -> tuple[RunStatus, float]:
        """Return the status of the whole run, and what it has cost in seconds of a CPU."""
        began = time.thread_time()
        status, self._partial = watcher.status(), False
        spent_s = time.thread_time() - began
        self._whole_at, self._whole_interval_s = time.monotonic(), _interval_s(spent_s, _MAX_WHOLE_SHARE)
        return status, spent_s

    def _publish(self, status: RunStatus | None, problem: str) -> None:
        if self._watcher is not None and self._watcher.replaced != self._replaced:
            self._forget()
            self._replaced = self._watcher.replaced
        self._version += 1
        self._status, self._problem = status, problem
        self._events.extend((self._version, event) for event in self._new_events)
        self._new_events.clear()
        for job in status.jobs if status is not None else ():
            known = self._jobs.get(job.key)
            if known is not job and known != job:
                self._jobs[job.key] = job
                self._changed[job.key] = self._version
        self.ended_jobs = sum(job.has_ended for job in self._jobs.values())

    def _observe(self, line: Mapping[str, Any]) -> None:
        if self._watcher is not None:
            event = event_of_line(line, self._watcher.history)
            if event is not None:
                self._new_events.append(event)


def _interval_s(spent_s: float, share: float) -> float:
    """Return after how many seconds work that has cost ``spent_s`` may be done again for a share of a CPU."""
    return min(max(spent_s / share, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
