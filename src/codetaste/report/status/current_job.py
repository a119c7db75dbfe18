"""The status of a job at this moment: its state, what it waits for, and its cost."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.orchestration.journal.history import LIVE_STATES, History, JobState
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.status.journal_view import JobTimes, JournalView
from codetaste.report.status.model import JobStatus, JobWait, Spend

if TYPE_CHECKING:
    from collections.abc import Mapping

RESOURCES = frozenset({WaitReason.JOBS, WaitReason.SANDBOX, WaitReason.CPU})
_NOT_ENDED = frozenset({*LIVE_STATES, JobState.INTERRUPTED})


def job_status(
    key: str,
    history: History,
    view: JournalView,
    spend: Spend,
    model: str | None,
    free: Mapping[str, float] | None,
) -> JobStatus:
    """Return the status of a job.

    Args:
        key: of the job.
        history: of the run.
        view: of the run.
        spend: of the job's calls.
        model: of its last call; None without one.
        free: the free amount of each resource, None in a stopped run.
    """
    job, times = history.jobs[key], view.jobs.get(key) or JobTimes()
    state = job.state if free is not None or job.state not in LIVE_STATES else JobState.INTERRUPTED
    # A need that the journal does not have yet has not ended either.
    needs = tuple(
        need for need in job.needs if need not in history.jobs or history.jobs[need].state in _NOT_ENDED
    )

    waits: list[JobWait] = []
    if free is not None:
        if state is JobState.QUEUED and needs:
            waits += [JobWait(Wait(WaitReason.NEED, need), times.since) for need in needs]
        elif state is JobState.QUEUED:
            ends = [view.jobs[need].since for need in job.needs if need in view.jobs]
            waits.append(JobWait(Wait(_short_of(times.resources, free)), max([times.since, *ends])))
        elif state is JobState.RETRYING:
            waits.append(JobWait(Wait(WaitReason.RETRY, "", times.retry_delay_s), times.since))
        waits += [JobWait(wait, begun[0]) for wait, begun in times.waits.items()]

    # What an earlier session or attempt failed of is no reason of what the job does now.
    failed = state is JobState.RETRYING or (state is not JobState.DONE and state not in _NOT_ENDED)
    retries: Counter[str] = Counter()
    for (_, cause), count in times.retries.items():
        retries[cause] += count
    return JobStatus(
        key,
        job.lane if model is None else model,
        state,
        times.since,
        job.attempts,
        spend,
        tuple(waits),
        needs if state in {JobState.QUEUED, JobState.INTERRUPTED} else (),
        dict(retries),
        times.cause if failed else None,
        job.error if failed else "",
        job.shortfall if state is JobState.DONE else None,
        None if state in _NOT_ENDED else times.clock.took_s,
    )


def _short_of(wanted: Mapping[str, float], free: Mapping[str, float]) -> WaitReason:
    """Return the resource that a queued job waits for: the first one of which too little is free."""
    if free.get("jobs", 0.0) >= 1:
        for name, amount in wanted.items():
            if name in RESOURCES and amount > free.get(name, amount):
                return WaitReason(name)
    return WaitReason.JOBS
