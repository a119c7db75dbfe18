"""``RunJobs``: the jobs of one run as rows, read from its journal, also of a run that goes on."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.errors import CodetasteError, JournalError
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem
from codetaste.llm.messages import Usage
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.journal.history import JobState
from codetaste.orchestration.journal.journal import JOURNAL_FILE
from codetaste.orchestration.wait import WaitReason
from codetaste.report.status.status import RunWatcher, call_state
from codetaste.results.rows.job import JobResult

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.report.status.journal_view import JobTimes, JournalView
    from codetaste.report.status.model import JobStatus

_WAITS = {
    *(WaitReason.BUDGET, WaitReason.PERMIT, WaitReason.RATE_LIMIT, WaitReason.OVERLOADED),
    *(WaitReason.CALL_RETRY, WaitReason.TESTS),
}
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class RunJobs:
    """The jobs of the run in ``root`` by key, the problem if its journal cannot be read to its end.

    ``ends`` has by key how each job ended in one word, for ``facet_of_record``: its cause, the name of its
    ending, or its state.
    """

    root: Path
    jobs: Mapping[str, JobResult] = field(default_factory=dict)
    ends: Mapping[str, str] = field(default_factory=dict)
    problem: ReadProblem | None = None


def read_jobs(root: Path, run: str) -> RunJobs:
    """Read the jobs of the run in the folder ``root``; none if it has no journal. Blocking.

    Of a journal that is damaged, the lines before the damage are read.
    """
    if not (root / JOURNAL_FILE).is_file():
        return RunJobs(root)
    try:
        watcher = RunWatcher(root)
    except CodetasteError as error:
        return RunJobs(root, problem=_problem(error))
    problem = None
    try:
        status = watcher.poll()
    except JournalError as error:
        problem = _problem(error)
        try:
            status = watcher.status()
        except (LookupError, TypeError, ValueError, ArithmeticError):
            return RunJobs(root, problem=problem)
    view, tokens = watcher.view, _tokens_of_jobs(watcher, live=bool(status.owner))
    until = status.at if status.owner else view.last_at
    jobs = {
        job.key: _row(job, run, watcher.history.job(job.key).title, view, tokens.get(job.key, {}), until)
        for job in status.jobs
    }
    return RunJobs(root, jobs, {job.key: _end(job) for job in status.jobs}, problem)


def _tokens_of_jobs(watcher: RunWatcher, *, live: bool) -> dict[str, dict[str, int | None]]:
    """Return the tokens of the calls of each job by kind, None where those of one call are unknown."""
    tokens: dict[str, dict[str, int | None]] = {}
    for call in watcher.history.calls.values():
        times, state = watcher.view.calls.get(call.call), call_state(call, watcher.history, live=live)
        usage = times.usage if times else {}
        billed = state is CallState.UNKNOWN or (state is CallState.SETTLED and call.cost.tokens > 0)
        total = tokens.setdefault(call.key, dict.fromkeys(Usage.KINDS, 0))
        for kind, count in total.items():
            more = usage.get(kind, 0) if usage or not billed else None
            total[kind] = None if count is None or more is None else count + more
    return tokens


def _problem(error: CodetasteError) -> ReadProblem:
    return ReadProblem(ProblemKind.UNREADABLE, JOURNAL_FILE, printable(str(error)))


def _end(job: JobStatus) -> str:
    if job.state is JobState.DONE:
        return job.shortfall.name if job.shortfall else ""
    return job.cause or job.state


def _row(
    job: JobStatus, run: str, title: str, view: JournalView, tokens: Mapping[str, int | None], until: float
) -> JobResult:
    times, ending = view.jobs.get(job.key), job.ending
    seconds = view.seconds(job.key, until)
    return JobResult(
        run=run,
        key=printable(job.key, _MAX_TEXT),
        flow=printable(job.key.partition("/")[0]),
        title=printable(title, _MAX_TEXT) or None,
        model=printable(job.model) or None,
        state=job.state.value,
        ending=printable(ending.name) if ending else None,
        ended_well=ending.well if ending else None,
        reason=(printable(ending.reason if ending else job.error, _MAX_TEXT)) or None,
        cause=job.cause,
        attempts=job.attempts,
        retries=sum(job.retries.values()),
        calls=sum(job.spend.calls.values()),
        settled_usd=float(job.spend.settled_usd),
        unknown_usd=float(job.spend.unknown_usd),
        reserved_usd=float(job.spend.reserved_usd),
        **_tokens(tokens),
        **_moments(times),
        queued_needs_s=round(seconds.needs, 3),
        queued_resources_s=round(seconds.resources, 3),
        retry_s=round(seconds.retries, 3),
        running_s=round(seconds.running, 3),
        working_s=round(seconds.working, 3),
        waiting_s=round(seconds.waiting, 3),
        **_waited(times),
    )


def _tokens(tokens: Mapping[str, int | None]) -> dict[str, Any]:
    return {f"tokens_{kind}": tokens.get(kind) for kind in Usage.KINDS}


def _moments(times: JobTimes | None) -> dict[str, Any]:
    names = ("queued_at", "started_at", "ended_at")
    return {name: _moment(getattr(times.clock, name)) if times else None for name in names}


def _moment(at: float | None) -> str | None:
    if at is None:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _waited(times: JobTimes | None) -> dict[str, Any]:
    """Return the seconds of waits by what they were for."""
    found = dict.fromkeys((f"waited_{each}_s" for each in (*sorted(_WAITS), "other")), 0.0)
    for wait, seconds in (times.waited_s if times else {}).items():
        found[f"waited_{wait.reason if wait.reason in _WAITS else 'other'}_s"] += seconds
    return {name: round(seconds, 3) for name, seconds in found.items()}
