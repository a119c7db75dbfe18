"""``codetaste status``: once, again and again on a terminal until the run ends, or one job in full."""

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
    """What is to be told of a run: all jobs however many, or those that fit the glob ``job`` in full."""

    run: Path
    everything: bool = False
    job: str = ""
    watch: bool = False
    json: bool = False


def show(wish: Wish) -> int:
    """Say how far a run has come; returns the exit code, 0.

    Raises:
        ConfigError: there is no such run or job.
        JournalError: the run's journal is damaged.
    """
    watched = Watched(wish.run)
    gc.disable()  # a journal makes many objects, all of which stay
    status = watched.look()
    gc.freeze()
    gc.enable()
    text = _text(wish, watched, status)
    if wish.watch:
        with _screen(wish) as screen:
            while status.owner:
                if screen is not None:
                    screen.update(_plain(text), refresh=True)
                time.sleep(EVERY_S)
                status = watched.look()
                text = _text(wish, watched, status)
    say(text)
    return 0


def _text(wish: Wish, watched: Watched, status: RunStatus) -> str:
    if wish.job:
        chosen = details(watched, status, wish.job)
        if wish.json:
            return json.dumps(details_json(chosen), indent=2)
        return render_details(chosen, status.at)
    if wish.json:
        return json.dumps(as_json(status), indent=2)
    return render(status, everything=wish.everything)


def _screen(wish: Wish) -> AbstractContextManager[Any]:
    """Return a part of the terminal that can be drawn again; nothing where there is none."""
    stream = result_stream()
    if wish.json or not stream.isatty():
        return nullcontext()
    from rich.console import Console  # noqa: PLC0415 - only on a terminal
    from rich.live import Live  # noqa: PLC0415

    return Live(console=Console(file=stream), auto_refresh=False, transient=True)


def _plain(text: str) -> Any:  # noqa: ANN401 - a rich renderable, imported late
    from rich.text import Text  # noqa: PLC0415 - only on a terminal

    return Text(text, overflow="ellipsis", no_wrap=True)
