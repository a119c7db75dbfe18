"""Output of a dry run: jobs, prices and the worst-case cost of a run."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_duration, format_usd

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from codetaste.llm.price import Rates
    from codetaste.llm.price_table import PriceEntry


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """A job that would run; ``lane`` is its model, "" if it calls none."""

    key: str
    needs: tuple[str, ...]
    lane: str


@dataclass(frozen=True, slots=True)
class PlannedTrial:
    """A trial with the limits of all its jobs together: US dollars, and seconds of working time."""

    key: str
    usd: Decimal
    working_s: float


@dataclass(frozen=True, slots=True)
class DryRun:
    """Jobs, the sum of the flows' budgets, and the run's budget; None where there is no limit.

    ``prices`` are those of the models that are used, by id.
    """

    jobs: tuple[PlannedJob, ...]
    flows_usd: Decimal | None
    run_usd: Decimal | None
    prices: Mapping[str, PriceEntry] = field(default_factory=dict)
    trials: tuple[PlannedTrial, ...] = ()

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


def render_dry_run(dry_run: DryRun, *, as_json: bool) -> str:
    """Render a dry run as text, a job a line, or as JSON."""
    if as_json:
        worst = dry_run.worst_case_usd
        return json.dumps(
            {
                "jobs": [
                    {"key": job.key, "needs": list(job.needs), "model": job.lane or None}
                    for job in dry_run.jobs
                ],
                "trials": [
                    {"key": trial.key, "budget_usd": format(trial.usd, "f"), "time_limit_s": trial.working_s}
                    for trial in dry_run.trials
                ],
                "prices": prices_to_json(dry_run.prices),
                "worst_case_usd": None if worst is None else format(worst, "f"),
            },
            indent=2,
        )
    width = max((len(job.key) for job in dry_run.jobs), default=0)
    lines = [
        f"{job.key:<{width}}  needs {', '.join(job.needs)}" if job.needs else job.key for job in dry_run.jobs
    ]
    prices = [format_price(name, entry) for name, entry in dry_run.prices.items()]
    trials = [
        f"trial {trial.key}: {format_usd(trial.usd)} and {format_duration(trial.working_s)} at most"
        for trial in dry_run.trials
    ]
    return "\n".join([*lines, *trials, *prices, format_worst_case(dry_run)])
