"""Output of a dry run: jobs, prices and the worst-case cost of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from codetaste.console.json import json_document
from codetaste.core.text import plural, wrap
from codetaste.core.units import format_duration, format_usd

if TYPE_CHECKING:
    from collections.abc import Mapping
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

    ``prices`` are those of the models that are used, by id; ``run`` is the folder of a run that has begun.
    """

    jobs: tuple[PlannedJob, ...]
    flows_usd: Decimal | None
    run_usd: Decimal | None
    prices: Mapping[str, PriceEntry] = field(default_factory=dict)
    trials: tuple[PlannedTrial, ...] = ()
    run: Path | None = None

    def with_work(self, work: Mapping[str, EarlierWork]) -> DryRun:
        """Return the dry run with what earlier sessions did of its jobs, by key."""
        return replace(self, jobs=tuple(replace(job, work=work.get(job.key, job.work)) for job in self.jobs))

    @property
    def worst_case_usd(self) -> Decimal | None:
        """The maximum that can be spent: the lower one of the two budgets, which are hard limits."""
        limits = [limit for limit in (self.flows_usd, self.run_usd) if limit is not None]
        return min(limits) if limits else None


def format_worst_case(dry_run: DryRun) -> str:
    """Format the worst-case cost in one line."""
    paid = sum(1 for job in dry_run.jobs if job.lane)
    most = dry_run.worst_case_usd
    calling = "1 job calls a model" if paid == 1 else f"{paid} jobs call a model"
    if most is None:
        return f"{calling}, and no budget limits what they cost"
    text = f"{calling}; all together they can cost {format_usd(most)} at most"
    if not dry_run.trials:
        return text
    working_s = sum(trial.working_s for trial in dry_run.trials)
    trials = "1 trial works" if len(dry_run.trials) == 1 else f"{len(dry_run.trials)} trials work"
    return f"{text}; {trials} {format_duration(working_s)} at most, one after the other"


def describe_repeats(dry_run: DryRun) -> str:
    """Describe in one line what would be bought again and why; "" if nothing would be."""
    repeated = [job.work for job in dry_run.jobs if job.work.state is WorkState.AGAIN and job.work.spent_usd]
    if not repeated:
        return ""
    spent_usd = sum((each.spent_usd for each in repeated), Decimal(0))
    jobs = {job.key for job in dry_run.jobs}
    reasons = Counter(name for each in repeated for name in each.changed if name not in jobs)
    why = ", ".join(f"{name} ({plural(count, 'job')})" for name, count in reasons.most_common())
    text = f"{plural(len(repeated), 'finished job')}, which cost {format_usd(spent_usd)}, would be done again"
    return f"{text}; changed since: {why}"


def format_price(model_id: str, entry: PriceEntry) -> str:
    """Format a model's price and the source of the price in one line."""
    if entry.price is None:
        return f"{model_id}: no price: {entry.source}"
    longer = [f"; above {rates.tokens} prompt tokens {_rates(rates)}" for rates in entry.price.above]
    return f"{model_id}: {_rates(entry.price)}{''.join(longer)} for a million tokens, by {entry.source}"


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
                "worst_case_usd": None if worst is None else format(worst, "f"),
            }
        )
    prices = [format_price(name, entry) for name, entry in dry_run.prices.items()]
    again = [describe_repeats(dry_run)] if describe_repeats(dry_run) else []
    lines = [*_job_lines(dry_run), *_trial_lines(dry_run), *prices, *again, format_worst_case(dry_run)]
    return wrap("\n".join(lines), width, "  ")


def _job_lines(dry_run: DryRun) -> list[str]:
    """Return a line for each job, or the jobs of each group by what was done of them."""
    if len(dry_run.jobs) > MAX_LINES:
        return _group_lines(dry_run)
    width = max((len(job.key) for job in dry_run.jobs), default=0)
    lines = []
    for job in dry_run.jobs:
        facts = [f"needs {', '.join(job.needs)}"] if job.needs else []
        if dry_run.run is not None and job.lane:
            facts.append(_describe_work(job.work))
        lines.append(f"{job.key:<{width}}  {'; '.join(facts)}".rstrip())
    return lines


def _describe_work(work: EarlierWork) -> str:
    text = str(work.state)
    if work.spent_usd:
        text += f", {format_usd(work.spent_usd)}"
    return text + (f": {', '.join(work.changed)} changed" if work.changed else "")


def _group_lines(dry_run: DryRun) -> list[str]:
    groups: dict[str, list[EarlierWork]] = {}
    for job in dry_run.jobs:
        groups.setdefault(job.group if job.lane else _WITHOUT_MODEL, []).append(job.work)
    states = list(WorkState) if dry_run.run is not None else []
    rows = [("jobs of", "all", *states, *(["spent"] if states else []))]
    without_model = groups.pop(_WITHOUT_MODEL, [])
    total = [work for works in groups.values() for work in works]
    for name, works in [*groups.items(), ("all that call a model", total), (_WITHOUT_MODEL, without_model)]:
        paid = works if name != _WITHOUT_MODEL else []
        counts = Counter(work.state for work in paid)
        spent = format_usd(sum((work.spent_usd for work in works), Decimal(0)))
        cells = [str(counts[state] or "") for state in states] + ([spent] if states else [])
        rows.append((name, str(len(works)), *cells))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(_align, range(len(row)), row, widths)) for row in rows]


def _align(column: int, cell: str, width: int) -> str:
    return f"{cell:>{width}}" if column else f"{cell:<{width}}"


def _trial_lines(dry_run: DryRun) -> list[str]:
    """Return a line for each trial, or for all with the same limits."""
    limits = Counter((trial.usd, trial.working_s) for trial in dry_run.trials)
    if len(dry_run.trials) <= MAX_LINES:
        return [
            f"trial {trial.key}: {format_usd(trial.usd)} and {format_duration(trial.working_s)} at most"
            for trial in dry_run.trials
        ]
    return [
        f"{plural(count, 'trial')}: {format_usd(usd)} and {format_duration(working_s)} at most for each"
        for (usd, working_s), count in limits.most_common()
    ]
