"""The mining of a run: its candidates, the best first."""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from anyio import to_thread

from codetaste.benchmark.benchmark import Benchmark
from codetaste.console.streams import notify
from codetaste.core.paths import cache_dir
from codetaste.errors import ConfigError
from codetaste.flows.mine.candidates import MinedCandidate, read_candidates
from codetaste.flows.mine.context import MiningContext
from codetaste.flows.mine.jobs import add_mining, add_scoring_rows, load_diff
from codetaste.flows.mine.scoring.context import ScoringContext, selection_keys
from codetaste.llm.price_table import budget_problems
from codetaste.llm.prompts import Prompts, open_prompts
from codetaste.orchestration.budget.cost import NamedLimits
from codetaste.report.dry_run import DryRun, PlannedJob
from codetaste.run.execute import open_run, run_jobs
from codetaste.run.flow_plan import FlowPlan
from codetaste.run.plan import RunOptions, RunPlan
from codetaste.run.resolve import ResolvedConfig

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.flows.mine.plan import MineConfig
    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.prefilter.diff import CommitDiff
    from codetaste.run.config import Config
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.results import RunContext
    from codetaste.run.signals import StopRequest


def plan_mining(limits: RuntimeLimits, path: Path) -> RunPlan:
    """Plan the mining of a config that was read from ``path``. Reads and starts nothing else.

    Raises:
        ConfigError: the folder of prompts cannot be used, or the model has no price under a budget.
    """
    config, mine = limits.config, _section(limits.config)
    base_dir, prompts = path.parent, Prompts()
    if config.run.prompts is not None:
        prompts = open_prompts((base_dir / config.run.prompts.expanduser()).absolute())
    if config.run.budget_usd is not None or mine.scoring.budget_usd is not None:
        problems = budget_problems(config.model_by_id(mine.scoring.model))
        if problems:
            raise ConfigError(*problems)
    others = {"describe": None, "discover": None, "environment": None, "evaluate": None, "tracks": ()}
    only_mining = config.model_copy(update={**others, "agents": ()})
    benchmark = Benchmark(limits.directory, ())
    resolved = ResolvedConfig(only_mining, base_dir, benchmark, (), (), prompts)
    budget = None if mine.scoring.budget_usd is None else mine.scoring.budget_usd * len(mine.runs)
    model = mine.scoring.model
    jobs = (PlannedJob(f"mine/{run.name}", (), model, "mining runs") for run in mine.runs)
    dry_run = DryRun(
        tuple(jobs), budget, config.run.budget_usd, resolved.prices(), notes=resolved.model_notes()
    )
    return RunPlan(resolved, replace(limits, config=only_mining), FlowPlan(), dry_run)


def _section(config: Config) -> MineConfig:
    assert config.mine is not None  # noqa: S101 - the caller looked
    return config.mine


class MiningResult(NamedTuple):
    """The candidates, the best first, and what the mining worked with."""

    candidates: list[MinedCandidate]
    context: MiningContext


async def mine(planned: RunPlan, options: RunOptions, stop: StopRequest) -> MiningResult:
    """Run the mining, and return its candidates.

    Raises:
        ConfigError: a source cannot be used.
        JournalError: the run directory is in use, damaged, or full.
    """
    mine_config = _section(planned.limits.config)
    async with AsyncExitStack() as stack:
        context = await open_run(stack, planned, options)
        mining = await _context(context, planned, options)
        await add_mining(context.session, mining, (NamedLimits("mine"),))
        outcomes = await run_jobs(context, planned, stop)
        for outcome in outcomes.values():
            if not outcome.usable and not stop.reason:
                notify(f"{outcome.key}: {outcome.error}")
        chosen_runs = set[str]()
        for run in mine_config.runs:
            chosen = outcomes.get(selection_keys(run.name)[1])
            if chosen is not None and chosen.usable:
                await add_scoring_rows(mining.folder(run), chosen)
                chosen_runs.add(run.name)
            elif not stop.reason:
                notify(f"mining run {run.name}: it has not come to its choice of candidates")
    found = await to_thread.run_sync(read_candidates, mining, notify, chosen_runs)
    return MiningResult(found, mining)


async def _context(context: RunContext, planned: RunPlan, options: RunOptions) -> MiningContext:
    resolved, config = planned.resolved, _section(planned.limits.config)
    places: list[MiningContext] = []

    async def load(record: CommitRecord) -> CommitDiff:
        return await load_diff(record, [places[0].places(run) for run in config.runs])

    label = resolved.config.labels()[config.scoring.model]
    scoring = ScoringContext(context.out, config.scoring, context.models, resolved.prompts, load, label)
    cache = await to_thread.run_sync(cache_dir, notify)
    add = context.session.add

    async def accept(price: str) -> bool:
        return options.yes or await to_thread.run_sync(_ask, price, abandon_on_cancel=True)

    places.append(MiningContext(context.out, resolved.base_dir, config, scoring, cache, add, accept))
    return places[0]


def _ask(price: str) -> bool:
    """Ask on a terminal whether a price is accepted; blocking.

    Raises:
        ConfigError: there is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"{price}; pass --yes to accept it")
    notify(f"{price}. Run the query? [y/N]")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
