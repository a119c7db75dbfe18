"""``codetaste status``: show the progress of a run once or until it ends, or one job in full."""

from __future__ import annotations

import gc
import json
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.console import print_result, result_stream
from codetaste.report.status.job_detail import job_details
from codetaste.report.status.json import job_details_to_json, status_to_json
from codetaste.report.status.status import RunWatcher
from codetaste.report.status.text import render_job_details, render_status

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from codetaste.report.status.model import RunStatus

REFRESH_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class StatusArguments:
    """Arguments of ``codetaste status``; ``everything`` lists all jobs, the glob ``job`` shows details."""

    run: Path
    everything: bool = False
    job: str = ""
    watch: bool = False
    json: bool = False


def show_status(arguments: StatusArguments) -> int:
    """Print the progress of a run; returns the exit code, 0.

    Raises:
        ConfigError: the run or job does not exist.
        JournalError: the run's journal is damaged.
    """
    watcher = RunWatcher(arguments.run)
    gc.disable()  # reading a journal creates many objects, all of which stay alive
    status = watcher.poll()
    gc.freeze()
    gc.enable()
    text = _render_status(arguments, watcher, status)
    if arguments.watch:
        with _screen(arguments) as screen:
            while status.owner:
                if screen is not None:
                    screen.update(_rich_text(text), refresh=True)
                time.sleep(REFRESH_INTERVAL_S)
                status = watcher.poll()
                text = _render_status(arguments, watcher, status)
    print_result(text)
    return 0


def _render_status(arguments: StatusArguments, watcher: RunWatcher, status: RunStatus) -> str:
    if arguments.job:
        chosen = job_details(watcher, status, arguments.job)
        if arguments.json:
            return json.dumps(job_details_to_json(chosen), indent=2)
        return render_job_details(chosen, status.at)
    if arguments.json:
        return json.dumps(status_to_json(status), indent=2)
    return render_status(status, all_jobs=arguments.everything)


def _screen(arguments: StatusArguments) -> AbstractContextManager[Any]:
    """Return a live display on the terminal, or an empty context for JSON or without a terminal."""
    stream = result_stream()
    if arguments.json or not stream.isatty():
        return nullcontext()
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    return Live(console=Console(file=stream), auto_refresh=False, transient=True)


def _rich_text(text: str) -> Any:  # noqa: ANN401 - a rich renderable, imported late
    from rich.text import Text  # noqa: PLC0415 - only on a terminal

    return Text(text, overflow="ellipsis", no_wrap=True)
