"""Progress output of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.text import printable
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.events import (
    CallRetrying,
    Draining,
    JobFinished,
    JobRetrying,
    JobStarted,
    Note,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TextIO

    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.events import Event
    from codetaste.report.live.progress import JobProgress, RunProgress

REFRESH_S = 0.25
_ROWS = 20
_GAUGES = 6


@asynccontextmanager
async def live_display(
    progress: RunProgress, title: str, stream: TextIO
) -> AsyncIterator[Callable[[Event], None]]:
    """Show a run's progress on ``stream`` inside the block; yield the observer to subscribe.

    On a terminal the display is redrawn four times a second; elsewhere each important event is one line.
    """
    if not stream.isatty():
        yield PlainLineWriter(progress, stream)
        return
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    display = Display(progress, title)
    with Live(display, console=Console(file=stream), auto_refresh=False, transient=True) as live:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_redraw, live)
            try:
                yield progress.observe
            finally:
                tasks.cancel_scope.cancel()


async def _redraw(live: Any) -> None:  # noqa: ANN401 - rich.live.Live, imported late
    while True:
        live.refresh()
        await anyio.sleep(REFRESH_S)


class PlainLineWriter:
    """An observer that writes one line for each important event."""

    def __init__(self, progress: RunProgress, stream: TextIO) -> None:
        self._progress = progress
        self._stream = stream
        self._began_s = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Observe an event and write its line, if it has one."""
        self._progress.observe(event)
        line = self._line(event)
        if line:
            elapsed = format_duration(time.monotonic() - self._began_s)
            self._stream.write(f"{elapsed:>6}  {printable(line)}\n")
            self._stream.flush()

    def _line(self, event: Event) -> str:
        match event:
            case JobStarted():
                again = f" (attempt {event.attempt})" if event.attempt > 1 else ""
                return f"{event.key}: started{again}"
            case JobFinished():
                origin = ", from an earlier session" if event.resumed else ""
                money = f", {format_usd(event.cost.spent.usd)}" if event.cost.spent.usd else ""
                why = f": {event.error}" if event.error else ""
                return f"{event.key}: {event.status}{origin}{money}{why}"
            case JobRetrying():
                return f"{event.key}: {event.cause}: {event.error}; retry in {format_duration(event.delay_s)}"
            case Note() | CallRetrying():
                return f"{event.key}: {event.text}" if event.key else event.text
            case Draining():
                return (
                    f"stopping: {event.why}; finished jobs are kept, run the same command again to continue"
                )
            case _:
                return ""


class Display:
    """The live display, a rich renderable."""

    def __init__(self, progress: RunProgress, title: str) -> None:
        self._progress = progress
        self._title = title
        self._began_s = time.monotonic()

    def __rich__(self) -> Any:  # noqa: ANN401 - a rich renderable, imported late
        """Return the renderable of the whole display."""
        from rich.console import Group  # noqa: PLC0415 - only on a terminal
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        active = self._progress.in_state("running", "retrying")
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
                Text(_activity(job, now_s), style="yellow" if job.waits or job.state == "retrying" else ""),
            )
        more = len(active) - _ROWS
        lines: list[Any] = [Text(self._headline(), style="bold"), table]
        if more > 0:
            lines.append(Text(f"… and {more} more running", style="dim"))
        lines.append(Text(self._counts(), style="dim"))
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

    def _counts(self) -> str:
        counts = self._progress.counts()
        waiting = counts.pop("queued", 0)
        parts = [f"{number} {state.replace('_', ' ')}" for state, number in sorted(counts.items())]
        return " · ".join([*parts, f"{waiting} waiting"])


def format_spend(money: BudgetSnapshot) -> str:
    """Format the settled, unknown and in-flight amounts, and the budget."""
    limit = f" of {format_usd(money.limits.usd)}" if money.limits.usd is not None else ""
    unknown = f" + {format_usd(money.unknown.usd)} unknown" if money.unknown.usd else ""
    flight = f" + {format_usd(money.reserved.usd)} in flight" if money.reserved.usd else ""
    return f"{format_usd(money.settled.usd)}{unknown}{flight}{limit}"


def _activity(job: JobProgress, now_s: float) -> str:
    if job.waits:
        return "; ".join(
            f"waits for {wait} ({format_duration(now_s - at)})" for wait, at in job.waits.items()
        )
    if job.state == "retrying":
        return printable(f"retrying: {job.error}")
    return printable(job.last_note)
