"""Progress output of a run: a live display on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

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
from codetaste.orchestration.job import Status
from codetaste.report.ending import ending_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from typing import TextIO

    from codetaste.orchestration.events import Event
    from codetaste.report.live.progress import RunProgress


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
    from codetaste.report.live.terminal import redrawn  # noqa: PLC0415 - rich is heavy

    async with redrawn(progress, title, stream):
        yield progress.observe


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
                ending = ending_of(Status(event.status), event.shortfall, event.error)
                why = f": {ending.reason}" if ending.reason else ""
                return f"{event.key}: {ending.name}{origin}{money}{why}"
            case JobRetrying():
                return f"{event.key}: {event.cause}: {event.error}; retry in {format_duration(event.delay_s)}"
            case Note() | CallRetrying():
                return f"{event.key}: {event.text}" if event.key else event.text
            case Draining():
                advice = "finished jobs are kept, run the same command again to continue"
                return f"stopping: {event.reason}; {advice}"
            case _:
                return ""
