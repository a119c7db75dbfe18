"""The status of a run as text, about a screenful for any number of jobs."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.console.streams import colour
from codetaste.core.text import plural, printable, shorten, wrap
from codetaste.core.units import format_duration, format_usd
from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.journal.history import JobState
from codetaste.report.live.logs import logs_folder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.report.status.job_detail import JobDetail
    from codetaste.report.status.model import JobStatus, ModelStatus, RunStatus, Spend

MAX_JOBS_LISTED = 20
"""Up to this number all jobs are listed."""
_MAX_PER_STATE = 6
_MAX_LINE = 500
_WAITING = "waiting"
"""Shown as the state of a running job that waits."""
STATE_ORDER: tuple[str, ...] = (
    *(JobState.FAILED, JobState.BUDGET_EXCEEDED, JobState.TIMEOUT),
    _WAITING,
    *(JobState.RUNNING, JobState.RETRYING, JobState.INTERRUPTED, JobState.CANCELLED),
    *(JobState.SKIPPED, JobState.QUEUED, JobState.DONE),
)
"""The order in which states are shown; endings of a job that is done but did not end well come before all."""
_COLLAPSED = {JobState.DONE, JobState.QUEUED, JobState.SKIPPED, JobState.CANCELLED}


def render_status(
    status: RunStatus, width: int | None = None, *, all_jobs: bool = False, coloured: bool = False
) -> str:
    """Render the status as text, ``width`` columns wide if given; with ``all_jobs`` every job has a line."""
    lines = _head_lines(status)
    uses = [
        f"{each.resource} {each.in_use:g} of {each.limit:g}"
        + (f" ({each.waiting} waiting)" if each.waiting else "")
        for each in status.capacities
    ]
    if uses:
        lines.append(printable(f"in use      {' · '.join(uses)}", _MAX_LINE))
    lines.extend(_model_line(model) for model in status.models)
    if status.retries:
        lines.append(f"retries     {format_counts(status.retries)}")
    lines = [wrap(line, width, " " * 12) for line in lines]
    lines.extend(_job_lines(status, width, everything=all_jobs, coloured=coloured))
    last = [f"products    {printable(str(path))}" for path in status.products]
    logs = logs_folder(status.directory)
    if logs.is_dir():
        last.append(f"logs        {printable(str(logs))}")
    return "\n".join([*lines, *(wrap(line, width, " " * 12) for line in last)])


def _head_lines(status: RunStatus) -> list[str]:
    who = f"running: {printable(status.owner)}" if status.owner else "not running"
    first = f"{printable(str(status.directory))}: {who}; {plural(len(status.sessions), 'session')}"
    if status.sessions:
        since = datetime.fromtimestamp(status.sessions[-1].at, UTC)
        first += f", the last since {since:%Y-%m-%d %H:%M:%S} UTC"
    lines = [first]
    if status.stop_reason:
        lines.append(f"stopping    {printable(status.stop_reason)}")
    if status.error:
        lines.append(f"error       {printable(status.error, _MAX_LINE)}")
    money = format_spend(status.spend)
    if status.limit_usd is not None:
        spend = status.spend
        left = status.limit_usd - spend.settled_usd - spend.unknown_usd - spend.reserved_usd
        money += f" of {format_usd(status.limit_usd)}, {format_usd(max(left, Decimal(0)))} left"
    if status.usd_per_minute and status.owner:
        money += f" · {format_usd(status.usd_per_minute)} a minute recently"
    lines.append(f"money       {money}")
    time = format_duration(status.used_s)
    if status.limit_s is not None:
        time += (
            f" of {format_duration(status.limit_s)}, {format_duration(status.limit_s - status.used_s)} left"
        )
    lines.append(f"time        {time}")
    return lines


def _model_line(model: ModelStatus) -> str:
    calls = model.spend.calls
    of_which = [f"{calls[state]} {word}" for state, word in _CALLS if calls[state]]
    line = f"model       {model.id}: {format_spend(model.spend)} · {plural(sum(calls.values()), 'call')}"
    line += f" ({', '.join(of_which)})" if of_which else ""
    line += f" · {format_tokens(model.tokens)}" if model.tokens["total"] else ""
    line += f" · retries: {format_counts(model.retries)}" if model.retries else ""
    line += f" · price: {model.price_source}" if model.price_source else ""
    return printable(line, _MAX_LINE)


_CALLS = (
    (CallState.IN_FLIGHT, "in flight"),
    (CallState.UNKNOWN, "of unknown cost"),
    (CallState.RELEASED, "not billed"),
)
_TOKENS = (
    ("input", "in"),
    ("cache_read", "cached"),
    ("cache_write", "cache-write"),
    ("output", "out"),
    ("reasoning", "of it reasoning"),
)


def format_tokens(tokens: Mapping[str, int]) -> str:
    """Format tokens by kind: "tokens 24k in, 1.1k out"."""
    parts = [f"{_short_count(tokens[kind])} {word}" for kind, word in _TOKENS if tokens.get(kind)]
    return f"tokens {', '.join(parts)}" if parts else f"tokens {_short_count(tokens.get('total', 0))}"


def _short_count(count: int) -> str:
    """Format a count in about four characters: 950, 12k, 3.4M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}" if count < 10 * size else f"{count // size}{letter}"
    return str(count)


def format_counts(counts: Mapping[str, int]) -> str:
    """Format counts by cause, the highest first: "3 × rate limit, 1 × timeout"."""
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return printable(", ".join(f"{count} × {cause.replace('_', ' ')}" for cause, count in ordered))


def _job_lines(status: RunStatus, width: int | None, *, everything: bool, coloured: bool) -> list[str]:
    by_state: dict[str, list[JobStatus]] = {}
    for job in status.jobs:
        by_state.setdefault(shown_state(job), []).append(job)
    rank = {state: place for place, state in enumerate(STATE_ORDER, 1)}
    # Endings of a job that is done but did not end well have no place of their own: they are first.
    states = sorted(by_state, key=lambda state: (rank.get(state, 0), state))
    counts = ", ".join(f"{len(by_state[state])} {printable(state.replace('_', ' '))}" for state in states)
    few = everything or len(status.jobs) <= MAX_JOBS_LISTED
    total = f"jobs        {len(status.jobs)}: {counts}" if counts else "jobs        none yet"
    lines = [wrap(total, width, " " * 12)]
    for state in states:
        jobs = sorted(by_state[state], key=lambda job: job.since)
        most = len(jobs) if few else 0 if state in _COLLAPSED else _MAX_PER_STATE
        for job in jobs[:most]:
            line = _job_line(state, job, status.at)
            # Of many jobs each has one line, so that the status stays a screen long.
            text = wrap(line, width, _INDENT) if few else shorten(line, width or _MAX_LINE)
            lines.append(_colour_state(text, job) if coloured else text)
        shown = f"{_INDENT[:6]}{state.replace('_', ' '):<15}"
        if 0 < most < len(jobs):
            lines.append(f"{shown} … and {len(jobs) - most} more (--all lists them)")
        reasons = Counter(each.wait.text for job in jobs for each in job.waits)
        if most < len(jobs) and reasons:
            waits = ", ".join(f"{count} for {what}" for what, count in reasons.most_common(_MAX_PER_STATE))
            lines.append(wrap(printable(f"{shown} wait: {waits}", _MAX_LINE), width, _INDENT))
    return lines


_INDENT = " " * 22
"""Of the key of a job, which comes after its mark and its state."""


def _colour_state(text: str, job: JobStatus) -> str:
    """Return a job's line with mark and state in the colour of its ending."""
    if job.ending is None:
        return text
    return f"{text[:2]}{colour(text[2:21], job.ending.mark.colour)}{text[21:]}"


def shown_state(job: JobStatus) -> str:
    """Return the state that is shown; one that did not end well has its ending's name."""
    if job.state is JobState.RUNNING and job.waits:
        return _WAITING
    return job.shortfall.name if job.shortfall is not None else job.state


def _job_line(state: str, job: JobStatus, now: float) -> str:
    mark = job.ending.mark.text if job.ending is not None else ""
    line = f"  {mark:<3} {state.replace('_', ' '):<15} {job.key}"
    if job.took_s is not None:
        line += f" · took {format_duration(job.took_s)}"
    elif job.since and not job.has_ended and job.state is not JobState.INTERRUPTED:
        line += f" · {format_duration(now - job.since)}"
    spend = job.spend
    if spend.settled_usd or spend.unknown_usd or spend.reserved_usd:
        line += f" · {format_spend(spend)}"
    if job.waits:
        waits = (f"{each.wait} ({format_duration(now - each.since)})" for each in job.waits)
        line += f" · waits for {', '.join(waits)}"
    elif job.needs:
        line += f" · needs {', '.join(job.needs)}"
    if job.retries:
        line += f" · retries: {format_counts(job.retries)}"
    if job.error:
        line += f" · {job.cause}: {job.error}" if job.cause else f" · {job.error}"
    elif job.shortfall is not None and job.shortfall.text:
        line += f" · {job.shortfall.text}"
    return printable(line, _MAX_LINE)


def format_spend(spend: Spend) -> str:
    """Format what was spent, with the amounts of unknown cost and in flight."""
    text = format_usd(spend.settled_usd)
    text += f" + {format_usd(spend.unknown_usd)} unknown" if spend.unknown_usd else ""
    return text + (f" + {format_usd(spend.reserved_usd)} in flight" if spend.reserved_usd else "")


def render_job_details(
    details: Sequence[JobDetail], now: float, width: int | None = None, *, coloured: bool = False
) -> str:
    """Render the details of some jobs, ``width`` columns wide if given."""
    blocks = []
    for each in details:
        first, *others = (wrap(line, width, "    ") for line in _detail_lines(each, now))
        first = _colour_state(f"  {first}", each.job)[2:] if coloured else first
        blocks.append("\n".join([first, *others]))
    return "\n\n".join(blocks)


def _detail_lines(each: JobDetail, now: float) -> list[str]:
    job = each.job
    lines = [_job_line(shown_state(job), job, now).strip()]
    lines.append(f"  attempts {job.attempts}" + (f", model {job.model}" if job.model else ""))
    lines.extend(f"  waited {format_duration(s)} for {wait.text}" for wait, s in each.waited_s.items())
    for call in each.calls:
        took = "" if call.duration_s is None else f", {call.duration_s:.1f} s"
        tokens = f", {format_tokens(call.tokens)}" if call.tokens else ""
        lines.append(
            f"  call {call.name}: {call.state.replace('_', ' ')} {format_usd(call.usd)}{took}{tokens}"
        )
    lines.extend(f"  note {text}" for text in each.notes)
    lines.extend(f"  {path}" for path in each.files)
    return [printable(line, _MAX_LINE) for line in lines]
