"""Background task: journals elapsed time every 5 s and drains the run if the journal fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.journal import Json
    from codetaste.orchestration.record import RunRecorder

_CLOCK_EVERY_S = 5.0  # kill -9 loses at most this much used time


class ClockWriter:
    """Writes the clocks of ``budget`` and all nodes beneath it; calls ``on_failure`` if the journal fails."""

    def __init__(self, record: RunRecorder, budget: Budget, on_failure: Callable[[str], None]) -> None:
        self._record, self._budget, self._on_failure = record, budget, on_failure
        self._clocks: dict[tuple[str, ...], tuple[float, float]] = {}

    async def run(self, scope: anyio.CancelScope) -> None:
        """Run until ``scope`` is cancelled."""
        with scope:
            while True:
                with anyio.move_on_after(_CLOCK_EVERY_S):
                    await self._record.journal.failed.wait()
                    self._on_failure(str(self._record.journal.failure))
                    await anyio.sleep_forever()
                self.write_clocks(limited=True)

    def write_clocks(self, *, limited: bool = False) -> None:
        """Journal the clocks that have advanced, so that used time survives the process.

        ``limited``: only the run's clock and those of nodes with a time limit, so that thousands of jobs that
        wait for hours do not fill the journal.
        """
        moved: list[Json] = []
        for node in self._budget.walk():
            if limited and node.path and node.limits.wall_s is None and node.limits.working_s is None:
                continue
            clock = (round(node.clock.wall_s, 3), round(node.clock.working_s, 3))
            if self._clocks.get(node.path, (0.0, 0.0)) != clock:
                self._clocks[node.path] = clock
                moved.append([list(node.path), *clock])
        if moved:
            self._record.note({"event": "clock", "nodes": moved})
