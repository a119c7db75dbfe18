"""The pages of runs that go on: an overview, one page a run that follows it, one page a job."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from codetaste.core.files import open_regular_file
from codetaste.core.text import printable
from codetaste.core.units import format_duration, format_usd
from codetaste.report.live.logs import log_name, logs_folder
from codetaste.report.status.text import STATE_ORDER, format_counts, format_spend, format_tokens, shown_state
from codetaste.site.html.address import relative
from codetaste.site.html.templates import environment, render_page
from codetaste.site.live.summary import format_moment, summarise

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from codetaste.report.status.job_detail import JobDetail
    from codetaste.report.status.model import JobStatus
    from codetaste.site.live.current_site import CurrentSite
    from codetaste.site.live.events import RunEvent
    from codetaste.site.live.followed_run import FollowedRun, RunView

INDEX = "live/index.html"
MAX_ROWS = 2000
"""So many jobs have a row on a page."""
_MAX_EVENTS = 200
_MAX_LOG_BYTES = 256 * 1024
_MAX_LOG_LINES = 300
_MAX_TEXT = 500
_MAX_DIGITS = 12


@dataclass(frozen=True, slots=True)
class JobRow:
    """One job as its row on the page shows it.

    ``id`` is of the job's key alone, ``order`` the place of its state, ``since`` in seconds of the epoch;
    ``elapsed`` is the time since then of a job that has not ended, ``took`` that of one that has.
    """

    id: str
    key: str
    state: str
    mark: str
    well: bool | None
    order: int
    since: float
    elapsed: str
    took: str
    spend: str
    about: str
    model: str
    attempts: int
    address: str
    result: str


def run_address(run: FollowedRun) -> str:
    """Return the address of the page that follows a run."""
    return f"live/{run.name}/index.html"


def job_address(run: FollowedRun, key: str) -> str:
    """Return the address of the page of one job."""
    return f"live/{run.name}/job.html?{urlencode({'key': key}, errors='replace')}"


def index_page(current: CurrentSite, runs: Sequence[tuple[FollowedRun, RunView]]) -> bytes:
    """Return the page with all runs."""
    return render_page(
        current.pages.site,
        "live/index.html",
        INDEX,
        "Live",
        runs=[(run, run_address(run), summarise(view)) for run, view in runs],
    )


def run_page(current: CurrentSite, run: FollowedRun, view: RunView) -> bytes:
    """Return the page that follows a run: complete as it is, and kept current by its script."""
    began = time.thread_time()
    body = render_page(
        current.pages.site,
        "live/run.html",
        run_address(run),
        run.title,
        crumbs=_crumbs(),
        page_version=page_version(current, view),
        next_s=view.next_s,
        rows=_rows(current, run, view),
        left_out=max(0, len(view.jobs) - MAX_ROWS),
        events=_latest(view.events),
        summary=summarise(view),
        moment=format_moment,
    )
    run.charge(time.thread_time() - began)
    return body


def split_version(text: str) -> tuple[str, int]:
    """Return the parts of a page's version: that of the run's view, and the number of the reading."""
    version, _, reading = text.rpartition(".")
    return version, int(reading) if reading.isdecimal() and len(reading) < _MAX_DIGITS else -1


def page_version(current: CurrentSite, view: RunView) -> str:
    """Return the version of a page, which its next request names."""
    return f"{view.version}.{current.pages.reading}"


def run_changes(current: CurrentSite, run: FollowedRun, view: RunView, reading: int) -> bytes:
    """Return what a page of the run changes, as JSON: pieces of it, made by the templates of the page.

    Args:
        current: the site.
        run: the run.
        view: what has changed in it.
        reading: of the results that the page has: jobs whose results were found since then are in the answer.
    """
    began, page = time.thread_time(), run_address(run)
    parts = environment().get_template("live/parts.html").make_module({"link": _linker(page)})
    rows = [
        {
            "id": row.id,
            "html": str(parts.job_row(row)),  # type: ignore[attr-defined]  # a macro
        }
        for row in _rows(current, run, _with_results(current, run, view, reading))
    ]
    data = {
        "version": page_version(current, view),
        "whole": view.whole,
        "next_s": view.next_s,
        "summary": str(parts.run_summary(summarise(view))),  # type: ignore[attr-defined]
        "job_rows": rows,
        "event_rows": [
            str(parts.event_row(event, format_moment))  # type: ignore[attr-defined]
            for event in _latest(view.events)
        ],
    }
    body = json.dumps(data, separators=(",", ":")).encode("ascii")
    run.charge(time.thread_time() - began)
    return body


def job_page(current: CurrentSite, run: FollowedRun, detail: JobDetail, now: float) -> bytes:
    """Return the page of one job: its calls, waits, notes and log."""
    key = detail.job.key
    return render_page(
        current.pages.site,
        "live/job.html",
        job_address(run, key).partition("?")[0],
        printable(key, _MAX_TEXT),
        crumbs=_crumbs((run.title, run_address(run))),
        row=_row(current, run, detail.job, now),
        detail=detail,
        log=_log_lines(run, key),
        duration=format_duration,
        usd=format_usd,
        tokens=format_tokens,
        moment=format_moment,
        text=printable,
    )


def _crumbs(*more: tuple[str, str]) -> list[tuple[str, str]]:
    return [("Live", INDEX), *more]


def _linker(page: str) -> Callable[[str], str]:
    return lambda target: relative(target, page)


def _latest(events: Sequence[RunEvent]) -> list[RunEvent]:
    """Return the events that a page shows, the newest first."""
    return list(reversed(events[-_MAX_EVENTS:]))


def _with_results(current: CurrentSite, run: FollowedRun, view: RunView, reading: int) -> RunView:
    """Return the view with the jobs whose results were found after ``reading``."""
    if view.whole or view.status is None or reading == current.pages.reading:
        return view
    changed = {job.key for job in view.jobs}
    found = tuple(
        job
        for job in view.status.jobs
        if job.key not in changed
        and (page := current.result_page(run.path, job.key)) is not None
        and page.reading > reading
    )
    return replace(view, jobs=(*view.jobs, *found))


def _rows(current: CurrentSite, run: FollowedRun, view: RunView) -> list[JobRow]:
    """Return the rows of the jobs of a view, those that a page shows first at the beginning."""
    at = view.status.at if view.status is not None else 0.0
    shown = sorted(view.jobs, key=lambda job: (_order(job), -_since(job), job.key))[:MAX_ROWS]
    return [_row(current, run, job, at) for job in shown]


def _order(job: JobStatus) -> int:
    state = shown_state(job)
    return STATE_ORDER.index(state) + 1 if state in STATE_ORDER else 0


def _since(job: JobStatus) -> float:
    return min((each.since for each in job.waits if each.since), default=job.since)


def _row(current: CurrentSite, run: FollowedRun, job: JobStatus, at: float) -> JobRow:
    ending, since = job.ending, _since(job)
    if job.waits:
        about = "waits for " + ", ".join(str(each.wait) for each in job.waits)
    elif job.needs:
        about = "needs " + ", ".join(job.needs)
    else:
        about = (ending.reason if ending is not None else "") or job.error
        about = f"{job.cause}: {about}" if job.cause and about else about or (job.cause or "")
    if job.retries:
        about += f"{' · ' if about else ''}retries: {format_counts(job.retries)}"
    spend, page = job.spend, current.result_page(run.path, job.key)
    return JobRow(
        sha256(job.key.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        printable(job.key, _MAX_TEXT),
        shown_state(job).replace("_", " "),
        ending.mark.text if ending is not None else "",
        ending.well if ending is not None else None,
        _order(job),
        since,
        format_duration(max(0.0, at - since)) if since and not job.has_ended else "",
        "" if job.took_s is None else format_duration(job.took_s),
        format_spend(spend) if spend.settled_usd or spend.unknown_usd or spend.reserved_usd else "",
        printable(about, _MAX_TEXT),
        printable(job.model),
        job.attempts,
        job_address(run, job.key),
        page.address if ending is not None and page is not None else "",
    )


def _log_lines(run: FollowedRun, key: str) -> list[str]:
    """Return the last lines of a job's log."""
    path = logs_folder(run.path) / log_name(key)
    try:
        with open_regular_file(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _MAX_LOG_BYTES))
            raw = file.read(_MAX_LOG_BYTES)
    except OSError:
        return []
    lines = raw.split(b"\n")[1 if size > _MAX_LOG_BYTES else 0 :]
    texts = (line.decode("utf-8", "replace") for line in lines if line)
    return [printable(text, _MAX_TEXT) for text in texts][-_MAX_LOG_LINES:]
