"""What goes on beside the jobs of a session: used time goes into the journal, and its failure is noticed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.journal import Json
    from codetaste.orchestration.record import Record

_CLOCK_EVERY_S = 5.0  # at most this much used time is forgotten by kill -9


class Upkeep:
    """Writes the clocks of ``budget`` and all beneath it; ``failed`` is told when the journal has failed."""

    def __init__(self, record: Record, budget: Budget, failed: Callable[[str], None]) -> None:
        self._record, self._budget, self._failed = record, budget, failed
        self._clocks: dict[tuple[str, ...], tuple[float, float]] = {}

    async def run(self, scope: anyio.CancelScope) -> None:
        """Go on until ``scope`` is cancelled."""
        with scope:
            while True:
                with anyio.move_on_after(_CLOCK_EVERY_S):
                    await self._record.journal.failed.wait()
                    self._failed(str(self._record.journal.failure))
                    await anyio.sleep_forever()
                self.write_clocks(limited=True)

    def write_clocks(self, *, limited: bool = False) -> None:
        """Put the clocks that have moved into the journal, so that used time survives the process.

        ``limited``: only the run's and those that a limit goes by, so that thousands of jobs that wait for
        hours do not fill the journal with the time that passes.
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
