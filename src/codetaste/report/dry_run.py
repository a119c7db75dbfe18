"""Output of a dry run: jobs, prices and the worst-case cost of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codetaste.console.json import json_document
from codetaste.core.text import plural, shorten, wrap
from codetaste.core.units import format_duration, format_usd

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.llm.price import Rates
    from codetaste.llm.price_table import PriceEntry


MAX_LINES = 20
"""Up to this number each job and each trial has a line; more are counted by group."""
_WITHOUT_MODEL = "those that call no model"


class WorkState(StrEnum):
    """What earlier sessions of a run did of a job."""

    NEW = "new"
    """Nothing."""
    STARTED = "started"
    """It was interrupted, and continues."""
    CUT = "cut"
    """A limit ended it; it continues if that limit was raised."""
    DONE = "done"
    AGAIN = "again"
    """It ended, but what decides its result has changed, so it would be done again."""


@dataclass(frozen=True, slots=True)
class EarlierWork:
    """What earlier sessions did of a job, the inputs that have changed since, and what it has cost."""

    state: WorkState = WorkState.NEW
    changed: tuple[str, ...] = ()
    spent_usd: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that would run; ``lane`` is its model, "" if it calls none, ``group`` what it is counted with."""

    key: str
    needs: tuple[str, ...]
    lane: str
    group: str = ""
    work: EarlierWork = field(default_factory=EarlierWork)


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial with the limits of all its jobs together: US dollars, and seconds of working time."""

    key: str
    usd: Decimal
    working_s: float


@dataclass(frozen=True, slots=True)
class DryRun:
    """Jobs, the sum of the flows' budgets, and the run's budget; None where there is no limit.

    ``prices`` are those of the models that are used, by id; ``run`` is the folder of a run that has begun;
    ``notes`` say which models retire, and whose price is not the known one.
    """

    jobs: tuple[PlannedJob, ...]
    flows_usd: Decimal | None
    run_usd: Decimal | None
    prices: Mapping[str, PriceEntry] = field(default_factory=dict)
    trials: tuple[PlannedTrial, ...] = ()
    run: Path | None = None
    notes: tuple[str, ...] = ()

    def with_work(self, work: Mapping[str, EarlierWork]) -> DryRun:
        """Return the dry run with what earlier sessions did of its jobs, by key."""
        return replace(self, jobs=tuple(replace(job, work=work.get(job.key, job.work)) for job in self.jobs))

    @property
    def worst_case_usd(self) -> Decimal | None:
        """The maximum that can be spent: the lower one of the two budgets, which are hard limits."""
        limits = [limit for limit in (self.flows_usd, self.run_usd) if limit is not None]
        return min(limits) if limits else None


def format_worst_case(dry_run: DryRun) -> str:
    """Format the worst-case cost in one line, with what was done and spent if the run has begun."""
    paid = [job.work for job in dry_run.jobs if job.lane]
    most = dry_run.worst_case_usd
    if not paid:
        return "no job calls a model"
    calling = "1 job calls a model" if len(paid) == 1 else f"{len(paid)} jobs call a model"
    states = Counter(work.state for work in paid)
    if set(states) - {WorkState.NEW}:
        calling += f" ({', '.join(f'{states[state]} {state}' for state in WorkState if states[state])})"
    if most is None:
        return f"{calling}, and no budget limits what they cost"
    text = f"{calling}; all together they can cost {format_usd(most)} at most"
    if spent_usd := _spent_usd(paid):
        text += f", {format_usd(spent_usd)} of it spent"
    if not dry_run.trials:
        return text
    working_s = sum(trial.working_s for trial in dry_run.trials)
    trials = "1 trial works" if len(dry_run.trials) == 1 else f"{len(dry_run.trials)} trials work"
    return f"{text}; {trials} {format_duration(working_s)} at most, one after the other"


def _spent_usd(works: Iterable[EarlierWork]) -> Decimal:
    return sum((work.spent_usd for work in works), Decimal(0))


def describe_repeats(dry_run: DryRun) -> str:
    """Describe in one line what would be bought again and why; "" if nothing would be."""
    repeated = [job.work for job in dry_run.jobs if job.work.state is WorkState.AGAIN and job.work.spent_usd]
    if not repeated:
        return ""
    spent_usd = _spent_usd(repeated)
    jobs = {job.key for job in dry_run.jobs}
    reasons = Counter(name for each in repeated for name in each.changed if name not in jobs)
    why = ", ".join(f"{name} ({plural(count, 'job')})" for name, count in reasons.most_common())
    text = f"{plural(len(repeated), 'finished job')}, which cost {format_usd(spent_usd)}, would be done again"
    return f"{text}; changed since: {why}"


def format_price(model_id: str, entry: PriceEntry) -> str:
    """Format a model's price for a million tokens and the source of the price in one line."""
    if entry.price is None:
        return f"{model_id}: no price: {entry.source}"
    longer = [f"; above {rates.tokens} prompt tokens {_rates(rates)}" for rates in entry.price.above]
    return f"{model_id}: {_rates(entry.price)}{''.join(longer)}, by {entry.source}"


def _rates(rates: Rates) -> str:
    cache = f"cache read ${rates.cache_read:f}, cache write ${rates.cache_write:f}"
    return f"input ${rates.input:f}, {cache}, output ${rates.output:f}"


def prices_to_json(prices: Mapping[str, PriceEntry]) -> dict[str, Any]:
    """Return prices and their sources as JSON data; dollars are text, null means unknown."""
    return {
        name: {"price": entry.price and entry.price.model_dump(mode="json"), "source": entry.source}
        for name, entry in prices.items()
    }


def render_dry_run(dry_run: DryRun, width: int | None = None, *, as_json: bool) -> str:
    """Render a dry run as text, a screen long and ``width`` columns wide if given, or as JSON."""
    if as_json:
        worst = dry_run.worst_case_usd
        return json_document(
            {
                "jobs": [
                    {
                        "key": job.key,
                        "needs": list(job.needs),
                        "model": job.lane or None,
                        "work": job.work.state,
                        "changed": list(job.work.changed),
                        "spent_usd": format(job.work.spent_usd, "f"),
                    }
                    for job in dry_run.jobs
                ],
                "trials": [
                    {"key": trial.key, "budget_usd": format(trial.usd, "f"), "time_limit_s": trial.working_s}
                    for trial in dry_run.trials
                ],
                "prices": prices_to_json(dry_run.prices),
                "notes": list(dry_run.notes),
                "worst_case_usd": None if worst is None else format(worst, "f"),
            }
        )
    again = [describe_repeats(dry_run)] if describe_repeats(dry_run) else []
    facts = [*_trial_lines(dry_run), *_price_lines(dry_run), *dry_run.notes, *again]
    facts.append(format_worst_case(dry_run))
    return "\n".join([*_work_table(dry_run, width), *(wrap(line, width, "    ") for line in facts)])


_MAX_JOB_LINES = 12
"""Up to this number of lines each job that calls a model has its own; more jobs are counted by group."""
_LEAST_NAME = 20
_MAX_GROUPS, _MAX_LIMITS, _MAX_PRICES = 10, 3, 4


def _work_table(dry_run: DryRun, width: int | None) -> list[str]:
    """Return the lines of a table of the jobs that call a model, and the number of the others by kind."""
    paid = [job for job in dry_run.jobs if job.lane]
    begun = dry_run.run is not None
    each = len(paid) + sum(1 for job in paid if job.work.changed)
    table = _group_lines if each > _MAX_JOB_LINES else _job_lines
    lines = table(paid, width, begun=begun)
    kinds = Counter(job.key.partition("/")[0] for job in dry_run.jobs if not job.lane)
    if kinds:
        counts = ", ".join(f"{kind} {count}" for kind, count in kinds.items())
        lines.append(wrap(f"besides {plural(kinds.total(), 'job')} without a model ({counts})", width, "  "))
    return lines


def _job_lines(jobs: Sequence[PlannedJob], width: int | None, *, begun: bool) -> list[str]:
    """Return a line or two for each job: its work, cost and key; and which inputs have changed, if any."""
    rows = [(str(job.work.state), format_usd(job.work.spent_usd) if begun else "") for job in jobs]
    widths = [max(map(len, column)) for column in zip(("work", "spent" * begun), *rows, strict=True)]
    margin = " " * (sum(widths) + 2 * (1 + begun))
    lines = [_cells(("work", "spent" * begun), widths) + "job"] if jobs else []
    for row, job in zip(rows, jobs, strict=True):
        lines.append(_cells(row, widths) + job.key)
        if job.work.changed:
            changed = f"{margin}changed: {', '.join(job.work.changed)}"
            lines.append(wrap(changed, width, f"{margin}  "))
    return lines


def _cells(row: tuple[str, str], widths: Sequence[int]) -> str:
    work, spent = row
    return f"{work:<{widths[0]}}  " + (f"{spent:>{widths[1]}}  " if widths[1] else "")


def _group_lines(jobs: Sequence[PlannedJob], width: int | None, *, begun: bool) -> list[str]:
    """Return a line for each of the first groups, the others together, and all."""
    groups: dict[str, list[EarlierWork]] = {}
    for job in jobs:
        groups.setdefault(job.group, []).append(job.work)
    shown = dict(list(groups.items())[:_MAX_GROUPS])
    others = [work for name, works in groups.items() if name not in shown for work in works]
    if others:
        shown[f"… and {plural(len(groups) - _MAX_GROUPS, 'more group')}"] = others
    shown["all jobs that call a model"] = [job.work for job in jobs]
    found = {job.work.state for job in jobs}
    states = [state for state in WorkState if state in found] if begun else []
    rows = [("jobs", "all", *states, *(["spent"] if begun else []))]
    for name, works in shown.items():
        counts = Counter(work.state for work in works)
        cells = [str(counts[state] or "") for state in states]
        spent = [format_usd(_spent_usd(works))] if begun else []
        rows.append((name, str(len(works)), *cells, *spent))
    names, *widths = (max(map(len, column)) for column in zip(*rows, strict=True))
    if width is not None:
        names = min(names, max(_LEAST_NAME, width - sum(widths) - 2 * len(widths)))
    return [
        "  ".join([f"{shorten(name, names):<{names}}", *map(str.rjust, cells, widths)])
        for name, *cells in rows
    ]


def _trial_lines(dry_run: DryRun) -> list[str]:
    """Return a line for all trials with the same limits."""
    limits = Counter((trial.usd, trial.working_s) for trial in dry_run.trials).most_common()
    lines = [
        f"{plural(count, 'trial')}: {format_usd(usd)} and {format_duration(working_s)} at most"
        + (" for each" if count > 1 else "")
        for (usd, working_s), count in limits[:_MAX_LIMITS]
    ]
    more = sum(count for _, count in limits[_MAX_LIMITS:])
    return [*lines, f"{plural(more, 'more trial')} with other limits"] if more else lines


def _price_lines(dry_run: DryRun) -> list[str]:
    if not dry_run.prices:
        return []
    lines = [f"  {format_price(name, entry)}" for name, entry in dry_run.prices.items()]
    more = len(lines) - _MAX_PRICES
    hidden = [f"  {plural(more, 'more model')}: --json has them"] if more > 0 else []
    return ["prices of a million tokens:", *lines[:_MAX_PRICES], *hidden]
