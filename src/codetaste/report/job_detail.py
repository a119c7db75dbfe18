"""All that is known of single jobs of a run: their calls, waits, notes, and where their files lie."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.report.logs import log_name, logs_folder
from codetaste.report.status import call_state, model_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal
    from pathlib import Path

    from codetaste.orchestration.history import Call
    from codetaste.report.run_status import JobStatus, RunStatus
    from codetaste.report.status import Watched


@dataclass(frozen=True, slots=True)
class CallDetail:
    """One call: what it cost (or may have), how long it took, and its tokens by kind."""

    name: str
    model: str
    state: str
    usd: Decimal
    duration_s: float | None
    tokens: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JobDetail:
    """One job. ``waited_s`` is by what was waited for; ``files`` are its log and its transcript."""

    job: JobStatus
    title: str
    calls: tuple[CallDetail, ...]
    waited_s: Mapping[str, float]
    notes: tuple[str, ...]
    files: tuple[Path, ...]


def details(watched: Watched, status: RunStatus, glob: str) -> tuple[JobDetail, ...]:
    """Return what is known of the jobs whose key fits ``glob``.

    Raises:
        ConfigError: none does.
    """
    chosen = [job for job in status.jobs if fnmatchcase(job.key, glob)]
    if not chosen:
        some = ", ".join(job.key for job in status.jobs[:3])
        raise ConfigError(f"--job {glob}: fits no job of this run (some are: {some or 'none yet'})")
    calls: dict[str, list[Call]] = {job.key: [] for job in chosen}
    for call in watched.history.calls.values():
        if call.key in calls:
            calls[call.key].append(call)
    return tuple(_detail(watched, job, calls[job.key], live=bool(status.owner)) for job in chosen)


def _detail(watched: Watched, job: JobStatus, calls: list[Call], *, live: bool) -> JobDetail:
    history = watched.history.job(job.key)
    sight = watched.sights.job(job.key)
    log = logs_folder(watched.directory) / log_name(job.key)
    transcript = watched.directory / "transcripts" / f"{job.key}.jsonl"
    return JobDetail(
        job,
        history.title,
        tuple(_call(watched, call, live=live) for call in calls),
        dict(sight.waited_s),
        tuple(sight.notes),
        tuple(path for path in (log, transcript) if ".." not in path.parts and path.is_file()),
    )


def _call(watched: Watched, call: Call, *, live: bool) -> CallDetail:
    state = call_state(call, watched.history, live=live)
    sight = watched.sights.calls[call.call]
    usd = {"settled": call.cost.usd, "released": call.cost.usd}.get(state, call.granted.usd)
    duration_s = None if sight.answered is None else sight.answered - sight.sent
    lane = watched.history.job(call.key).lane
    return CallDetail(call.call, model_of(call, lane), state, usd, duration_s, sight.usage)
