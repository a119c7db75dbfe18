"""``codetaste status``: show the progress of a run once or until it ends, or one job in full."""

from __future__ import annotations

import gc
import json
import time
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.command import result_stream, say
from codetaste.report.job_detail import details
from codetaste.report.status import Watched
from codetaste.report.status_json import as_json, details_json
from codetaste.report.status_text import render, render_details

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path

    from codetaste.report.run_status import RunStatus

EVERY_S = 1.0


@dataclass(frozen=True, slots=True)
class Wish:
    """Arguments of ``codetaste status``; ``everything`` lists all jobs, the glob ``job`` shows details."""

    run: Path
    everything: bool = False
    job: str = ""
    watch: bool = False
    json: bool = False


def show(arguments: Wish) -> int:
    """Print the progress of a run; returns the exit code, 0.

    Raises:
        ConfigError: the run or job does not exist.
        JournalError: the run's journal is damaged.
    """
    watcher = Watched(arguments.run)
    gc.disable()  # reading a journal creates many objects, all of which stay alive
    status = watcher.look()
    gc.freeze()
    gc.enable()
    text = _render_status(arguments, watcher, status)
    if arguments.watch:
        with _screen(arguments) as screen:
            while status.owner:
                if screen is not None:
                    screen.update(_rich_text(text), refresh=True)
                time.sleep(EVERY_S)
                status = watcher.look()
                text = _render_status(arguments, watcher, status)
    say(text)
    return 0


def _render_status(arguments: Wish, watcher: Watched, status: RunStatus) -> str:
    if arguments.job:
        chosen = details(watcher, status, arguments.job)
        if arguments.json:
            return json.dumps(details_json(chosen), indent=2)
        return render_details(chosen, status.at)
    if arguments.json:
        return json.dumps(as_json(status), indent=2)
    return render(status, everything=arguments.everything)


def _screen(arguments: Wish) -> AbstractContextManager[Any]:
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
