"""``FollowedRun``: a run whose journal is read as it grows, and what has changed since a reader's last look.

It reads the journal only when a page asks for it, and less often if reading and pages take more CPU time.
It takes no lock of the run and writes nothing.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import deque
from dataclasses import dataclass
from glob import escape
from typing import TYPE_CHECKING, Any

from codetaste.errors import ConfigError, JournalError
from codetaste.report.status.job_detail import job_details
from codetaste.report.status.status import RunWatcher
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
_MAX_SHARE = 0.01
"""At most this share of a CPU goes into reading a journal and making pages. Requests take as much again."""


@dataclass(frozen=True, slots=True)
class RunView:
    """A run at its last reading, as one reader needs it.

    Attributes:
        version: what to name at the next look. A reader that names another one gets everything.
        whole: whether ``jobs`` and ``events`` are all there are, not only those since the last look.
        status: None if the run has not begun, or its journal cannot be read.
        problem: why ``status`` is None or old, "" if it is neither.
        jobs: in the order of the journal.
        events: in their order.
        next_s: seconds until another look is of use.
    """

    version: str
    whole: bool
    status: RunStatus | None
    problem: str
    jobs: tuple[JobStatus, ...]
    events: tuple[RunEvent, ...]
    next_s: float


class FollowedRun:
    """One run. All methods block and may be called from any thread.

    Attributes:
        path: as it was named; what it names need not exist yet.
        name: one part of the addresses of its pages.
        title: its name for people.
    """

    def __init__(self, path: Path, name: str, title: str) -> None:
        self.path, self.name, self.title = path, name, title
        self._lock = threading.Lock()
        self._watcher: RunWatcher | None = None
        self._status: RunStatus | None = None
        self._problem = ""
        self._read_at, self._interval_s = -_MAX_INTERVAL_S, _MIN_INTERVAL_S
        self._pages_cpu_s = 0.0
        self._forget()

    def _forget(self) -> None:
        self._epoch, self._version, self._replaced = secrets.token_hex(4), 0, 0
        self._changed: dict[str, int] = {}
        self._jobs: dict[str, JobStatus] = {}
        self._events: deque[tuple[int, RunEvent]] = deque(maxlen=MAX_EVENTS)
        self._number = 0

    def look(self, version: str = "") -> RunView:
        """Return what has changed since ``version``, after reading the journal on if it is time for that."""
        with self._lock:
            self._poll()
            epoch, _, number = version.partition("-")
            known = number.isdecimal() and epoch == self._epoch
            since = int(number) if known else -1
            jobs = tuple(job for key, job in self._jobs.items() if self._changed[key] > since)
            events = tuple(event for at, event in self._events if at > since)
            return RunView(
                f"{self._epoch}-{self._version}",
                not known,
                self._status,
                self._problem,
                jobs,
                events,
                self._interval_s,
            )

    def detail(self, key: str) -> JobDetail | None:
        """Return what is known of one job; None if there is no such job."""
        with self._lock:
            self._poll()
            if self._watcher is None or self._status is None or key not in self._jobs:
                return None
            return job_details(self._watcher, self._status, escape(key))[0]

    def charge(self, cpu_s: float) -> None:
        """Count what a page of the run has cost, in seconds of a CPU: the next reading is the later."""
        with self._lock:
            self._pages_cpu_s += cpu_s

    @property
    def ended_jobs(self) -> int:
        """How many jobs had ended at the last reading."""
        return sum(job.ending is not None for job in self._jobs.values())

    def _poll(self) -> None:
        began = time.monotonic()
        if began < self._read_at + self._interval_s:
            return
        cpu_s = time.thread_time()
        try:
            if self._watcher is None:
                self._watcher = RunWatcher(self.path, self._observe)
            self._version += 1
            self._watcher.poll()
            self._problem = ""
        except (ConfigError, JournalError) as error:
            self._problem = str(error)
        if self._watcher is not None:
            # Of a damaged journal, what is before the damage.
            self._status = self._watcher.status()
            self._note_changes(self._status.jobs)
        self._read_at = time.monotonic()
        # The pages that are made of this reading will cost about as much as those of the last one.
        spent_s = time.thread_time() - cpu_s + self._pages_cpu_s
        self._interval_s = min(max(spent_s / _MAX_SHARE, _MIN_INTERVAL_S), _MAX_INTERVAL_S)
        self._pages_cpu_s = 0.0

    def _observe(self, line: Mapping[str, Any]) -> None:
        watcher = self._watcher
        if watcher is None:
            return
        if watcher.replaced != self._replaced:
            self._forget()
            self._version, self._replaced = 1, watcher.replaced
        event = event_of_line(line, watcher.history, self._number + 1)
        if event is not None:
            self._number += 1
            self._events.append((self._version, event))

    def _note_changes(self, jobs: tuple[JobStatus, ...]) -> None:
        for job in jobs:
            if self._jobs.get(job.key) != job:
                self._jobs[job.key] = job
                self._changed[job.key] = self._version
