"""``JobClock``: the seconds of a job by what it did, folded from the journal: queued, worked, waited."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class _Phase(Enum):
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    NONE = "none"
    """It has ended, or its process has."""


@dataclass(frozen=True, slots=True)
class JobSeconds:
    """The seconds of a job over all sessions.

    Attributes:
        needs: queued until the jobs that it needs had ended.
        resources: queued from then on: for a permit, a sandbox or a processor.
        retries: between an attempt that failed and the next one.
        running: in attempts.
        waiting: of these, those in which it waited for at least one thing.
    """

    needs: float = 0.0
    resources: float = 0.0
    retries: float = 0.0
    running: float = 0.0
    waiting: float = 0.0

    @property
    def working(self) -> float:
        """The seconds of its attempts in which it waited for nothing."""
        return max(0.0, self.running - self.waiting)


@dataclass(slots=True)
class JobClock:
    """The clock of one job; times are seconds of the epoch, None for what has not happened.

    Its methods are called in the order of the journal; ``ready_at`` is when the last job that it needs had
    ended.
    """

    queued_at: float | None = None
    started_at: float | None = None
    ended_at: float | None = None
    needs: tuple[str, ...] = ()
    _seconds: dict[str, float] = field(default_factory=dict)
    _phase: _Phase = _Phase.NONE
    _since: float = 0.0
    _waits: int = 0
    _waiting_since: float = 0.0

    @property
    def active(self) -> bool:
        """Whether it is queued, runs, or waits for its next attempt."""
        return self._phase is not _Phase.NONE

    @property
    def took_s(self) -> float | None:
        """Seconds of its attempts and between them, over all sessions; None if it never started or ended."""
        if self.started_at is None or self.ended_at is None:
            return None
        return self._seconds.get("running", 0.0) + self._seconds.get("retries", 0.0)

    def queue(self, at: float, needs: tuple[str, ...]) -> None:
        """Queue it."""
        self.needs = needs
        self.queued_at = at if self.queued_at is None else self.queued_at
        self._enter(_Phase.QUEUED, at)

    def start(self, at: float, ready_at: float) -> None:
        """Start an attempt."""
        self.started_at = at if self.started_at is None else self.started_at
        self._enter(_Phase.RUNNING, at, ready_at)

    def retry(self, at: float) -> None:
        """End an attempt that is followed by another one."""
        self._enter(_Phase.RETRYING, at)

    def end(self, at: float) -> None:
        """End it."""
        self._enter(_Phase.NONE, at)
        self.ended_at = at

    def stop(self, at: float, ready_at: float) -> None:
        """Note that its process has ended; ``at`` is the last time that is known of it."""
        self._enter(_Phase.NONE, at, ready_at)

    def begin_wait(self, at: float) -> None:
        """Begin one more wait, if an attempt runs."""
        if self._phase is not _Phase.RUNNING:
            return
        if not self._waits:
            self._waiting_since = at
        self._waits += 1

    def end_wait(self, at: float) -> None:
        """End one of its waits."""
        if self._waits:
            self._waits -= 1
            if not self._waits:
                self._add("waiting", at - self._waiting_since)

    def seconds(self, until: float, ready_at: float) -> JobSeconds:
        """Return its seconds up to the time ``until``."""
        found = dict(self._seconds)
        for name, seconds in self._open(until, ready_at):
            found[name] = found.get(name, 0.0) + seconds
        return JobSeconds(**found)

    def _enter(self, phase: _Phase, at: float, ready_at: float = 0.0) -> None:
        for name, seconds in self._open(at, ready_at):
            self._add(name, seconds)
        self._phase, self._since, self._waits = phase, at, 0

    def _open(self, at: float, ready_at: float) -> list[tuple[str, float]]:
        """Return the seconds since the last change, by name."""
        passed = max(0.0, at - self._since)
        if self._phase is _Phase.QUEUED:
            needs = min(passed, max(0.0, ready_at - self._since))
            return [("needs", needs), ("resources", passed - needs)]
        if self._phase is _Phase.RETRYING:
            return [("retries", passed)]
        if self._phase is _Phase.RUNNING:
            waiting = max(0.0, at - self._waiting_since) if self._waits else 0.0
            return [("running", passed), ("waiting", waiting)]
        return []

    def _add(self, name: str, seconds: float) -> None:
        self._seconds[name] = self._seconds.get(name, 0.0) + max(0.0, seconds)
