"""The live display of a run on a terminal; importing this module imports rich."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from codetaste.core.text import printable
from codetaste.core.units import format_duration
from codetaste.orchestration.journal.history import JobState
from codetaste.report.live.progress import format_spend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import TextIO

    from rich.console import RenderableType

    from codetaste.report.live.progress import JobProgress, RunProgress

REFRESH_S = 0.25
_ROWS = 20
_GAUGES = 6


@asynccontextmanager
async def redrawn(progress: RunProgress, title: str, stream: TextIO) -> AsyncIterator[None]:
    """Draw ``progress`` on the terminal ``stream`` inside the block, again and again."""
    display = Display(progress, title)
    with Live(display, console=Console(file=stream), auto_refresh=False, transient=True) as live:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_redraw, live)
            try:
                yield
            finally:
                tasks.cancel_scope.cancel()


async def _redraw(live: Live) -> None:
    while True:
        live.refresh()
        await anyio.sleep(REFRESH_S)


class Display:
    """The live display, a rich renderable."""

    def __init__(self, progress: RunProgress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._began_s = time.monotonic()

    def __rich__(self) -> Group:
        """Return the renderable of the whole display."""
        active = self._progress.in_state(JobState.RUNNING, JobState.RETRYING)
        table = Table(box=None, pad_edge=False, expand=True)
        for name, ratio in (("job", 4), ("time", None), ("spent", None), ("now", 5)):
            table.add_column(name, ratio=ratio, no_wrap=True, header_style="dim")
        now_s = self._progress.clock()
        for job in active[:_ROWS]:
            began_s = job.started_s if job.started_s is not None else now_s
            table.add_row(
                Text(printable(job.title)),
                format_duration(now_s - began_s),
                format_spend(job.money),
                Text(
                    _activity(job, now_s),
                    style="yellow" if job.waits or job.state is JobState.RETRYING else "",
                ),
            )
        more = len(active) - _ROWS
        lines: list[RenderableType] = [Text(self._headline(), style="bold"), table]
        if more > 0:
            lines.append(Text(f"… and {more} more running", style="dim"))
        counts = self._progress.counts()
        waiting = counts.pop(JobState.QUEUED, 0)
        parts = [f"{number} {state.replace('_', ' ')}" for state, number in sorted(counts.items())]
        lines.append(Text(" · ".join([*parts, f"{waiting} waiting"]), style="dim"))
        lines.extend(
            Text(printable(line), style="dim") for line in self._progress.limiter_summary()[:_GAUGES]
        )
        if self._progress.stop_reason:
            lines.append(Text(f"stopping: {printable(self._progress.stop_reason)}", style="bold red"))
        return Group(*lines)

    def _headline(self) -> str:
        elapsed_s = time.monotonic() - self._began_s
        limit_s = self._progress.root.limits.wall_s
        used_s = self._progress.earlier_wall_s + elapsed_s
        left = f" · {format_duration(limit_s - used_s)} left" if limit_s is not None else ""
        return f"{self._title} · {format_duration(elapsed_s)}{left} · {format_spend(self._progress.root)}"


def _activity(job: JobProgress, now_s: float) -> str:
    if job.waits:
        return "; ".join(
            f"waits for {wait} ({format_duration(now_s - at)})" for wait, at in job.waits.items()
        )
    if job.state is JobState.RETRYING:
        return printable(f"retrying: {job.error}")
    return printable(job.last_note)
