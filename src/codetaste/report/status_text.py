"""The status of a run as a person reads it: a screenful, however many jobs there are."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.report.logs import logs_folder
from codetaste.report.progress import printable
from codetaste.report.sights import reason
from codetaste.units import format_duration, format_usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.report.job_detail import JobDetail
    from codetaste.report.run_status import JobStatus, ModelStatus, RunStatus, Spend

ALL_UP_TO = 20
"""So many jobs are all listed."""
_OF_EACH = 6
_LINE = 500
_ORDER = (
    "failed",
    "budget_exceeded",
    "timeout",
    "waiting",
    "running",
    "retrying",
    "interrupted",
    "cancelled",
    "skipped",
    "queued",
    "done",
)
_COLLAPSED = {"done", "queued", "skipped", "cancelled"}


def render(status: RunStatus, *, everything: bool = False) -> str:
    """Say it as text. ``everything`` lists all jobs however many there are."""
    lines = [*_head(status), *_limits(status), *_models(status.models), *_retries(status.retries)]
    lines.extend(_jobs(status, everything=everything))
    lines.extend(f"products    {printable(str(path))}" for path in status.products)
    logs = logs_folder(status.directory)
    if logs.is_dir():
        lines.append(f"logs        {printable(str(logs))}")
    return "\n".join(lines)


def _head(status: RunStatus) -> list[str]:
    who = f"at work: {printable(status.owner)}" if status.owner else "nobody is at work on it"
    count = len(status.sessions)
    said = f"{printable(str(status.directory))}: {who}; {count} session{'' if count == 1 else 's'}"
    if count:
        said += f", the last since {_moment(status.sessions[-1].at)}"
    lines = [said]
    if status.stopping:
        lines.append(f"stopping    {printable(status.stopping)}")
    money = _money(status.spend)
    if status.limit_usd is not None:
        spend = status.spend
        left = status.limit_usd - spend.settled_usd - spend.unknown_usd - spend.in_flight_usd
        money += f" of {format_usd(status.limit_usd)}, {format_usd(max(left, Decimal(0)))} left"
    if status.rate_usd and status.owner:
        money += f" · {format_usd(status.rate_usd)} a minute of late"
    lines.append(f"money       {money}")
    time = format_duration(status.used_s)
    if status.limit_s is not None:
        time += (
            f" of {format_duration(status.limit_s)}, {format_duration(status.limit_s - status.used_s)} left"
        )
    lines.append(f"time        {time}")
    return lines


def _limits(status: RunStatus) -> list[str]:
    if not status.capacities:
        return []
    said = [
        f"{each.resource} {each.taken:g} of {each.limit:g}"
        + (f" ({each.waiting} wait)" if each.waiting else "")
        for each in status.capacities
    ]
    return [printable(f"at once     {' · '.join(said)}", _LINE)]


def _models(models: Iterable[ModelStatus]) -> list[str]:
    lines = []
    for model in models:
        calls = model.spend.calls
        of_which = [f"{calls[state]} {word}" for state, word in _CALLS if calls[state]]
        said = f"model       {model.id}: {_money(model.spend)} · {sum(calls.values())} calls"
        said += f" ({', '.join(of_which)})" if of_which else ""
        said += f" · {_tokens(model.tokens)}" if model.tokens["total"] else ""
        said += f" · tried again: {_counted(model.retries)}" if model.retries else ""
        said += f" · price: {model.price_source}" if model.price_source else ""
        lines.append(printable(said, _LINE))
    return lines


_CALLS = (("in_flight", "in flight"), ("unknown", "of unknown cost"), ("released", "not billed"))
_TOKENS = (
    ("input", "in"),
    ("cache_read", "cached"),
    ("cache_write", "cache-write"),
    ("output", "out"),
    ("reasoning", "of it reasoning"),
)


def _tokens(tokens: Mapping[str, int]) -> str:
    said = [f"{_short(tokens[kind])} {word}" for kind, word in _TOKENS if tokens.get(kind)]
    return f"tokens {', '.join(said)}" if said else f"tokens {_short(tokens.get('total', 0))}"


def _short(count: int) -> str:
    """Say a count in at most four characters or so: 950, 12k, 3.4M."""
    for size, letter in ((10**9, "G"), (10**6, "M"), (10**3, "k")):
        if count >= size:
            return f"{count / size:.1f}{letter}" if count < 10 * size else f"{count // size}{letter}"
    return str(count)


def _retries(retries: Mapping[str, int]) -> list[str]:
    return [f"tried again {_counted(retries)}"] if retries else []


def _counted(counts: Mapping[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return printable(", ".join(f"{count} × {cause.replace('_', ' ')}" for cause, count in ordered))


def _jobs(status: RunStatus, *, everything: bool) -> list[str]:
    by_state: dict[str, list[JobStatus]] = {}
    for job in status.jobs:
        waiting = job.state == "running" and job.waits
        by_state.setdefault("waiting" if waiting else job.state, []).append(job)
    rank = {state: place for place, state in enumerate(_ORDER)}
    states = sorted(by_state, key=lambda state: rank.get(state, len(rank)))
    counts = ", ".join(f"{len(by_state[state])} {printable(state.replace('_', ' '))}" for state in states)
    few = everything or len(status.jobs) <= ALL_UP_TO
    lines = [f"jobs        {len(status.jobs)}: {counts}" if counts else "jobs        none yet"]
    for state in states:
        jobs = sorted(by_state[state], key=lambda job: job.since)
        most = len(jobs) if few else 0 if state in _COLLAPSED else _OF_EACH
        lines.extend(_line(state, job, status.at) for job in jobs[:most])
        if 0 < most < len(jobs):
            lines.append(f"  {state:<15} … and {len(jobs) - most} more (--all lists them)")
        reasons = Counter(reason(wait.what) for job in jobs for wait in job.waits)
        if most < len(jobs) and reasons:
            said = ", ".join(f"{count} for {what}" for what, count in reasons.most_common(_OF_EACH))
            lines.append(printable(f"  {state:<15} wait: {said}", _LINE))
    return lines


def _line(state: str, job: JobStatus, now: float) -> str:
    said = f"  {state.replace('_', ' '):<15} {job.key}"
    if job.since and state not in {"done", "skipped"}:
        said += f" · {format_duration(now - job.since)}"
    spend = job.spend
    if spend.settled_usd or spend.unknown_usd or spend.in_flight_usd:
        said += f" · {_money(spend)}"
    if job.waits:
        waits = (f"{wait.what} ({format_duration(now - wait.since)})" for wait in job.waits)
        said += f" · waits for {', '.join(waits)}"
    elif job.needs:
        said += f" · needs {', '.join(job.needs)}"
    if job.retries:
        said += f" · tried again: {_counted(job.retries)}"
    if job.error:
        said += f" · {job.cause}: {job.error}" if job.cause else f" · {job.error}"
    return printable(said, _LINE)


def _money(spend: Spend) -> str:
    said = format_usd(spend.settled_usd)
    said += f" + {format_usd(spend.unknown_usd)} unknown" if spend.unknown_usd else ""
    return said + (f" + {format_usd(spend.in_flight_usd)} in flight" if spend.in_flight_usd else "")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def render_details(details: Sequence[JobDetail], now: float) -> str:
    """Say all that is known of some jobs."""
    return "\n\n".join("\n".join(_detail(each, now)) for each in details)


def _detail(each: JobDetail, now: float) -> list[str]:
    job = each.job
    lines = [_line(job.state, job, now).strip()]
    lines.append(f"  attempts {job.attempts}" + (f", model {job.model}" if job.model else ""))
    lines.extend(f"  waited {format_duration(s)} for {what}" for what, s in each.waited_s.items())
    for call in each.calls:
        took = "" if call.duration_s is None else f", {call.duration_s:.1f} s"
        tokens = f", {_tokens(call.tokens)}" if call.tokens else ""
        lines.append(
            f"  call {call.name}: {call.state.replace('_', ' ')} {format_usd(call.usd)}{took}{tokens}"
        )
    lines.extend(f"  note {text}" for text in each.notes)
    lines.extend(f"  {path}" for path in each.files)
    return [printable(line, _LINE) for line in lines]
