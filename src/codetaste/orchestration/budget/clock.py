"""Wall and working clock of a budget node, and the deadlines that follow them.

The wall clock of a node runs while there is work in the node or beneath it. The working clock runs with it,
but stops while all of that work waits (for a rate limit, a permit, a back-off). A deadline is a cancel scope
that moves with the clocks of its node and of all ancestors.
"""

from __future__ import annotations

import math
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator


class Clock:
    """Wall and working seconds of one node, and the limit of each."""

    def __init__(self, parent: Clock | None, *, wall_s: float = 0.0, working_s: float = 0.0) -> None:
        self.chain: tuple[Clock, ...] = (*parent.chain, self) if parent else (self,)
        self.wall_limit_s = math.inf
        self.working_limit_s = math.inf
        self._parent = parent
        self._wall_s, self._working_s = wall_s, working_s
        self._since = time.monotonic()
        self._entered = self._waits = self._busy = self.running_children = self.working_children = 0
        self._running = self._working = False
        self.deadlines: set[_Deadline] = set()
        """Deadlines that this clock moves: all beneath it while it limits working time, else none."""
        self._beneath: set[_Deadline] = set()

    @property
    def running(self) -> bool:
        """Whether there is work in this node or beneath it."""
        return self._running

    @property
    def wall_s(self) -> float:
        """Seconds with work in this node or beneath it, waiting included."""
        return self._wall_s + (time.monotonic() - self._since if self._running else 0.0)

    @property
    def working_s(self) -> float:
        """Seconds with work in this node or beneath it that did not wait."""
        return self._working_s + (time.monotonic() - self._since if self._working else 0.0)

    def time_left_s(self) -> float:
        """Return the seconds until the tightest limit of this node or an ancestor, assuming no waits."""
        return min(
            min(clock.wall_limit_s - clock.wall_s, clock.working_limit_s - clock.working_s)
            for clock in self.chain
        )

    def wall_left_s(self) -> float:
        """Return the seconds until the tightest wall limit of this node or an ancestor."""
        return min(clock.wall_limit_s - clock.wall_s for clock in self.chain)

    def set_limits(self, wall_s: float | None, working_s: float | None) -> None:
        """Set the limits in seconds; ``None`` is no limit. Deadlines beneath this node move at once."""
        self.wall_limit_s = math.inf if wall_s is None else wall_s
        self.working_limit_s = math.inf if working_s is None else working_s
        self.deadlines = set(self._beneath) if working_s is not None else set()
        for deadline in self._beneath:
            deadline.restart()

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Run the clocks of this node and its ancestors."""
        self._entered += 1
        self.update()
        try:
            yield
        finally:
            self._entered -= 1
            self.update()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Stop the working clock, except inside ``busy()``; overlapping waits count once."""
        self._waits += 1
        self.update()
        try:
            yield
        finally:
            self._waits -= 1
            self.update()

    @contextmanager
    def busy(self) -> Iterator[None]:
        """Keep the working clock running although other work of this node waits."""
        self._busy += 1
        self.update()
        try:
            yield
        finally:
            self._busy -= 1
            self.update()

    @contextmanager
    def deadline(self, grace_s: float = 0.0) -> Iterator[anyio.CancelScope]:
        """Open a scope that is cancelled ``grace_s`` after the tightest limit has been reached."""
        with self.at_work():
            deadline = _Deadline(self, grace_s)
            for clock in self.chain:
                clock.enter(deadline)
            try:
                with deadline.scope as scope:
                    yield scope
            finally:
                for clock in self.chain:
                    clock.leave(deadline)

    def enter(self, deadline: _Deadline) -> None:
        """Make ``deadline`` follow this clock."""
        self._beneath.add(deadline)
        if self.working_limit_s < math.inf:
            self.deadlines.add(deadline)

    def leave(self, deadline: _Deadline) -> None:
        """Stop ``deadline`` from following this clock."""
        self._beneath.discard(deadline)
        self.deadlines.discard(deadline)

    def update(self) -> None:
        """Start or stop the clocks of this node and its ancestors according to the counts."""
        running = self._entered > 0 or self.running_children > 0
        # A node with running children works exactly when one of them does.
        active = self._busy > 0 or not self._waits
        working = self.working_children > 0 if self.running_children else running and active
        if (running, working) == (self._running, self._working):
            return
        now = time.monotonic()
        self._wall_s += now - self._since if self._running else 0.0
        self._working_s += now - self._since if self._working else 0.0
        self._since = now
        parent = self._parent
        if parent is not None:
            parent.running_children += running - self._running
            parent.working_children += working - self._working
        self._running, self._working = running, working
        for deadline in self.deadlines:
            deadline.move()
        if parent is not None:
            parent.update()

    def next_limit_s(self) -> float:
        """Return the seconds until a limit of this node alone is reached if nothing changes."""
        working_s = self.working_limit_s - self.working_s if self._working else math.inf
        return min(self.wall_limit_s - self.wall_s, working_s)


class _Deadline:
    """A cancel scope and the clocks that decide when it ends."""

    __slots__ = ("_clock", "_grace_s", "_late_s", "scope")

    def __init__(self, clock: Clock, grace_s: float) -> None:
        self._clock, self._grace_s = clock, grace_s
        self.scope = anyio.CancelScope()
        self._late_s = 0.0
        self.restart()

    def restart(self) -> None:
        """Recompute the deadline after the limits have changed."""
        # A job that continues after a resume, or under lower limits, may be late already; it still gets its
        # grace once.
        self._late_s = min(0.0, self._ends_s())
        self.move()

    def move(self) -> None:
        """Set the scope's deadline from the current clocks."""
        ends_s = self._ends_s() - self._late_s
        if ends_s < math.inf:
            self.scope.deadline = anyio.current_time() + ends_s + self._grace_s
        elif self.scope.deadline < math.inf:
            self.scope.deadline = math.inf

    def _ends_s(self) -> float:
        return min(clock.next_limit_s() for clock in self._clock.chain)
