"""The live display of a run on a terminal; importing this module imports rich.

It fits the terminal: a job has one line on a wide one and two on a narrow one, and the less important lines
are left out of a low one.
"""

from __future__ import annotations

import math
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import anyio
from rich.console import Console
from rich.live import Live
from rich.text import Text

from codetaste.core.text import printable, shorten
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.journal.history import JobState
from codetaste.report.ending import Ending, count_endings
from codetaste.report.live.progress import format_spend

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from typing import TextIO

    from rich.console import ConsoleOptions
    from rich.segment import Segment

    from codetaste.report.live.progress import JobProgress, RunProgress

REFRESH_S = 0.25
_WIDE = 110
"""From this number of columns on a job has one line."""
_GROUPS, _GAUGES, _BAD = 5, 3, 3
_LEAST_JOB_LINES = 8
_LEAST_INSTANCE, _LEAST_TITLE = 6, 12
_TIME_WIDTH, _MONEY_WIDTH = 13, 9
_ACTIVE = (JobState.RUNNING, JobState.RETRYING)
_ONLY_COUNTED = {JobState.CANCELLED, JobState.SKIPPED}
"""Jobs that ended like this are counted, and have no line of their own."""
_STYLES = {"ok": "green", "failed": "red", "cancelled": "dim", "skipped": "dim"}


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

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text | Segment]:
        """Yield the lines of the display: the run first, then its jobs, then what ended badly."""
        width, height = options.max_width, console.size.height
        head = [Text(self._headline(), style="bold"), self._counts()]
        gauges = [Text(printable(line), style="dim") for line in self._progress.limiter_summary()[:_GAUGES]]
        groups, bad = self._groups(), self._endings(width)
        if self._progress.stop_reason:
            head.append(Text(f"stopping: {printable(self._progress.stop_reason)}", style="bold red"))
        # Of a low terminal the jobs get the lines first, then what ended badly.
        for optional in (gauges, groups, bad):
            used = sum(map(len, (head, gauges, groups, bad)))
            del optional[max(0, len(optional) - max(0, used + _LEAST_JOB_LINES - height)) :]
        room = height - 1 - sum(map(len, (head, gauges, groups, bad)))
        for line in (*head, *groups, *gauges, *self._jobs(width, room), *bad):
            line.truncate(width, overflow="ellipsis")
            yield line

    def _headline(self) -> str:
        elapsed_s = time.monotonic() - self._began_s
        limit_s = self._progress.root.limits.wall_s
        used_s = self._progress.earlier_wall_s + elapsed_s
        left = f" · {format_duration(limit_s - used_s)} left" if limit_s is not None else ""
        return f"{self._title} · {format_duration(elapsed_s)}{left} · {format_spend(self._progress.root)}"

    def _counts(self) -> Text:
        """Return the numbers of jobs by how they ended, or their state."""
        ended = [job.ending for job in self._progress.jobs.values()]
        parts = [
            (f"{count} {name}", _STYLES.get(name, "")) for name, count in self._count_ended(ended).items()
        ]
        states = self._progress.counts()
        parts += [(f"{states[state]} {state.value}", "") for state in _ACTIVE if states[state]]
        parts.append((f"{states[JobState.QUEUED]} waiting", "dim"))
        return Text(" · ").join(Text(*part) for part in parts)

    @staticmethod
    def _count_ended(endings: list[Ending | None]) -> dict[str, int]:
        return count_endings(each for each in endings if each is not None)

    def _groups(self) -> list[Text]:
        """Return the progress of each group of jobs, such as an agent on a track, if there are several."""
        groups: dict[str, list[JobProgress]] = {}
        for job in self._progress.jobs.values():
            if job.group:
                groups.setdefault(job.group, []).append(job)
        if len(groups) < 2:  # noqa: PLR2004 - the counts above say it
            return []
        # Groups in which nothing is left to do are shown last.
        ordered = sorted(groups.items(), key=lambda item: all(job.ending for job in item[1]))
        lines = [self._group(name, jobs) for name, jobs in ordered[:_GROUPS]]
        if len(ordered) > _GROUPS:
            lines[-1] = Text(f"  … and {len(ordered) - _GROUPS + 1} more groups", style="dim")
        return lines

    def _group(self, name: str, jobs: list[JobProgress]) -> Text:
        endings = [job.ending for job in jobs if job.ending is not None]
        badly = sum(not each.well for each in endings)
        line = Text(f"  {len(endings)} of {len(jobs)} {printable(name)}")
        return line.append(f", {badly} not well", style="red") if badly else line

    def _jobs(self, width: int, room: int) -> Iterator[Text]:
        """Yield the lines of the running jobs, at most ``room``."""
        active, now_s = self._progress.in_state(*_ACTIVE), self._progress.clock()
        each = 1 if width >= _WIDE else 2
        count = len(active) if len(active) * each <= room else max(1, (room - 1) // each)
        for job in active[:count]:
            yield from _wide(job, now_s, width) if each == 1 else _narrow(job, now_s, width)
        if count < len(active):
            yield Text(f"… and {len(active) - count} more running", style="dim")

    def _endings(self, width: int) -> list[Text]:
        """Return a line for each of the last jobs that did not end well."""
        bad = [
            (job, job.ending)
            for job in sorted(self._progress.jobs.values(), key=lambda job: job.ended_s)
            if job.ending is not None and not job.ending.well and job.state not in _ONLY_COUNTED
        ]
        return [
            Text(f"{ending.mark.text:<3} ", style=ending.mark.colour).append(
                f"{fit_title(job.title, width // 2)} {printable(str(ending))}", style=""
            )
            for job, ending in bad[-_BAD:]
        ]


def _wide(job: JobProgress, now_s: float, width: int) -> Iterator[Text]:
    title_width = (width - _TIME_WIDTH - _MONEY_WIDTH - 2) // 2
    facts = f"{fit_title(job.title, title_width):<{title_width}} {_facts(job, now_s)}"
    yield Text(facts).append(f"  {_activity(job, now_s)}", style=_style(job))


def _narrow(job: JobProgress, now_s: float, width: int) -> Iterator[Text]:
    title_width = max(_LEAST_TITLE, width - _TIME_WIDTH - _MONEY_WIDTH - 2)
    yield Text(f"{fit_title(job.title, title_width):<{title_width}} {_facts(job, now_s)}")
    yield Text(f"  {_activity(job, now_s)}", style=_style(job) or "dim")


def _facts(job: JobProgress, now_s: float) -> str:
    """Return how long the job has run, how much time it has left, and what it cost."""
    began_s = job.started_s if job.started_s is not None else now_s
    left_s = job.time_left_s() if job.state is JobState.RUNNING else math.inf
    left = f"-{format_duration(left_s)}" if left_s < math.inf else ""
    spent = job.money.settled.usd + job.money.unknown.usd + job.money.reserved.usd
    return f"{format_duration(now_s - began_s):>6}{left:>7} {format_usd(spent):>8}"


def _style(job: JobProgress) -> str:
    return "yellow" if job.waits or job.state is JobState.RETRYING else ""


def _activity(job: JobProgress, now_s: float) -> str:
    if job.waits:
        return "; ".join(
            f"waits for {wait} ({format_duration(now_s - at)})" for wait, at in job.waits.items()
        )
    if job.state is JobState.RETRYING:
        return printable(f"retrying: {job.error}")
    return printable(job.last_note)


def fit_title(title: str, width: int) -> str:
    """Return a job's title in ``width`` columns; the longest word, the instance, loses its beginning."""
    text = printable(title)
    words = text.split(" ")
    longest = max(range(len(words)), key=lambda number: len(words[number]))
    excess = len(text) - width
    if excess > 0:
        keep = max(_LEAST_INSTANCE, len(words[longest]) - excess - 1)
        words[longest] = f"…{words[longest][-keep:]}" if keep < len(words[longest]) - 1 else words[longest]
    return shorten(" ".join(words), max(1, width))
