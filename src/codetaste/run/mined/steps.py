"""Yield and cost of each step of a run that mines, from the commits of its sources to its instances."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

from codetaste.mining.funnel import StepYield, yield_of_stages
from codetaste.report.status.status import RunWatcher
from codetaste.run.mined.assembly import CHECK

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from codetaste.mining.funnel import FunnelRow
    from codetaste.run.config import Config
    from codetaste.run.mined.assembly import Assembly

_OF_INSTANCES = ("sources", "describe", "environment", "discover", CHECK)
"""The steps of an instance; but for the last one they are what the keys of their jobs begin with."""
_SCORING = "mine"
_TRIALS = "infer"


def yield_of_steps(
    funnels: Iterable[Sequence[FunnelRow]], assembly: Assembly, config: Config, folder: Path
) -> list[StepYield]:
    """Return the steps in their order; blocking.

    Counts come from the files of the run and costs from its journal, so that they are the same however often
    the run was continued.

    Raises:
        JournalError: the journal is damaged.
    """
    costs = _costs(folder)
    steps = [_with_scoring_cost(each, costs) for each in yield_of_stages(funnels)]
    if not assembly.candidates:
        return steps
    found = steps[-1].passed if steps else len(assembly.candidates)
    dropped = {name: each for name, each in assembly.dropped.items() if name in assembly.candidate_ids}
    tried = len(assembly.chosen) + len(dropped)
    if found > len(assembly.candidates):
        steps.append(StepYield("the same in several runs", found, found - len(assembly.candidates)))
    steps.append(StepYield("choice of instances", len(assembly.candidates), len(assembly.candidates) - tried))
    removed, left = Counter(each.step for each in dropped.values()), tried
    for name in _OF_INSTANCES:
        if name not in _configured(config) and not removed[name]:
            continue
        pending = len(assembly.pending.get(name, ()))
        steps.append(StepYield(name, left, removed[name], pending, costs[name]))
        left -= removed[name]
    return [*steps, StepYield("trials", left, 0, cost_usd=costs[_TRIALS])] if config.tracks else steps


def _configured(config: Config) -> set[str]:
    sections = ("describe", "environment", "discover")
    found = {name for name in sections if getattr(config, name) is not None}
    checks = config.mine is not None and config.mine.check and config.discover is not None
    return found | ({CHECK} if checks else set())


def _with_scoring_cost(each: StepYield, costs: Mapping[str, Decimal]) -> StepYield:
    """Return a stage with what the journal knows that it cost; a call without a result is in no funnel."""
    return replace(each, cost_usd=costs[_SCORING]) if each.step == "scoring" else each


def _costs(folder: Path) -> Mapping[str, Decimal]:
    """Return settled and unknown US dollars by the first word of the keys of jobs."""
    costs: defaultdict[str, Decimal] = defaultdict(Decimal)
    for job in RunWatcher(folder).poll().jobs:
        costs[job.key.partition("/")[0]] += job.spend.settled_usd + job.spend.unknown_usd
    return costs
