"""``codetaste status``: show the progress of a run once or until it ends, or one job in full."""

from __future__ import annotations

import gc
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from codetaste.cli.options import AsJson, Flag
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result, result_is_coloured, result_stream, width_of
from codetaste.report.status.job_detail import job_details
from codetaste.report.status.json import job_details_to_json, status_to_json
from codetaste.report.status.status import RunWatcher
from codetaste.report.status.text import render_job_details, render_status

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REFRESH_INTERVAL_S = 1.0


@command
def status(
    run: Path,
    /,
    *,
    all_: Annotated[Flag, Parameter(name="--all")] = False,
    job: str = "",
    watch: Flag = False,
    json_: AsJson = False,
) -> int:
    """Print the progress of a run once, or until it ends.

    Args:
        run: The run's folder (runs/NAME), or its name.
        all_: List all jobs.
        job: Show all details of the jobs whose key matches this glob: calls, waits, notes, log.
        watch: Refresh every second until the run ends; without a terminal, only wait for the end.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the run or job does not exist.
        JournalError: the run's journal is damaged.
    """
    watcher = RunWatcher(run)
    gc.disable()  # reading a journal creates many objects, all of which stay alive
    current = watcher.poll()
    gc.freeze()
    gc.enable()

    def render(width: int | None = None, *, coloured: bool = False) -> str:
        if job:
            chosen = job_details(watcher, current, job)
            if json_:
                return json_document(job_details_to_json(chosen))
            return render_job_details(chosen, current.at, width, coloured=coloured)
        if json_:
            return json_document(status_to_json(current))
        return render_status(current, width, all_jobs=all_, coloured=coloured)

    text = render()
    if watch:
        with _open_screen(hidden=json_) as show:
            while current.owner:
                show(text)
                time.sleep(REFRESH_INTERVAL_S)
                current = watcher.poll()
                text = render()
    print_result(render(width_of(result_stream()), coloured=result_is_coloured()))
    return 0


@contextmanager
def _open_screen(*, hidden: bool) -> Iterator[Callable[[str], None]]:
    """Give a function that shows text in place of the previous text, but only on a terminal."""
    stream = result_stream()
    if hidden or not stream.isatty():
        yield lambda _text: None
        return
    from rich import console, live, text  # noqa: PLC0415 - only on a terminal

    screen = live.Live(console=console.Console(file=stream), auto_refresh=False, transient=True)
    with screen:
        yield lambda shown: screen.update(text.Text(shown, overflow="ellipsis", no_wrap=True), refresh=True)
