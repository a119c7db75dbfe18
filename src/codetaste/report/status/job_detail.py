"""Details of single jobs of a run: their calls, waits, notes and files."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import TRANSCRIPTS_FOLDER
from codetaste.errors import ConfigError
from codetaste.orchestration.budget.node import CallState
from codetaste.report.live.logs import log_name, logs_folder
from codetaste.report.status.status import call_state, model_of_call

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal
    from pathlib import Path

    from codetaste.orchestration.journal.history import CallRecord
    from codetaste.orchestration.wait import Wait
    from codetaste.report.status.model import JobStatus, RunStatus
    from codetaste.report.status.status import RunWatcher


@dataclass(frozen=True, slots=True)
class CallDetail:
    """One call: its cost (or the amount reserved for it), its duration, and its tokens by kind."""

    name: str
    model: str
    state: CallState
    usd: Decimal
    duration_s: float | None
    tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job. ``waited_s`` has seconds by what it waited for; ``files`` are its log and its transcript."""

    job: JobStatus
    title: str
    calls: tuple[CallDetail, ...]
    waited_s: Mapping[Wait, float]
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def job_details(watcher: RunWatcher, status: RunStatus, glob: str) -> tuple[JobDetail, ...]:
    """Return the details of the jobs whose keys match ``glob``.

    Raises:
        ConfigError: no job matches.
    """
    chosen = [job for job in status.jobs if fnmatchcase(job.key, glob)]
    if not chosen:
        some = ", ".join(job.key for job in status.jobs[:3])
        raise ConfigError(f"--job {glob}: matches no job of this run (some are: {some or 'none yet'})")
    calls: dict[str, list[CallDetail]] = {job.key: [] for job in chosen}
    for call in watcher.history.calls.values():
        if call.key in calls:
            calls[call.key].append(_call(watcher, call, live=bool(status.owner)))
    details = []
    for job in chosen:
        times = watcher.view.job(job.key)
        log = logs_folder(watcher.directory) / log_name(job.key)
        transcript = watcher.directory / TRANSCRIPTS_FOLDER / f"{job.key}.jsonl"
        files = tuple(path for path in (log, transcript) if ".." not in path.parts and path.is_file())
        title, waited_s = watcher.history.job(job.key).title, dict(times.waited_s)
        details.append(JobDetail(job, title, tuple(calls[job.key]), waited_s, tuple(times.notes), files))
    return tuple(details)


def _call(watcher: RunWatcher, call: CallRecord, *, live: bool) -> CallDetail:
    state = call_state(call, watcher.history, live=live)
    times = watcher.view.calls[call.call]
    usd = call.cost.usd if state in {CallState.SETTLED, CallState.RELEASED} else call.granted.usd
    duration_s = None if times.answered_at is None else times.answered_at - times.sent_at
    lane = watcher.history.job(call.key).lane
    return CallDetail(call.call, model_of_call(call, lane), state, usd, duration_s, times.usage)
