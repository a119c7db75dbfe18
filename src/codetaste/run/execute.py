"""Execute a planned run: open its services and session, run the jobs, sum up the results."""

from __future__ import annotations

import sys
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.benchmark.benchmark import QUICKSTART
from codetaste.benchmark.layout import RUN_CONFIG_FILE
from codetaste.case_study.jobs import StudyContext, study_handlers, study_jobs
from codetaste.console.exit_codes import STOPPED, error_to_json
from codetaste.console.json import json_document
from codetaste.console.streams import (
    notify,
    print_result,
    result_is_coloured,
    result_stream,
    width_of,
)
from codetaste.core.files import write_atomically
from codetaste.core.paths import cache_dir
from codetaste.core.text import printable
from codetaste.errors import Cause, ConfigError
from codetaste.evaluation.config import EvaluateConfig
from codetaste.flows.agents.services import AgentSet, open_agent_services
from codetaste.flows.describe.context import DescriptionContext
from codetaste.flows.describe.jobs import description_handlers, description_jobs
from codetaste.flows.discover.context import DiscoveryContext
from codetaste.flows.discover.jobs import discovery_handlers, discovery_jobs
from codetaste.flows.environment.jobs import environment_handlers, environment_jobs, lost_images
from codetaste.flows.evaluate.context import EvaluationContext, load_references
from codetaste.flows.evaluate.jobs import evaluation_handlers, evaluation_jobs
from codetaste.flows.evaluate.refactoring_jobs import (
    RefactoringContext,
    refactoring_handlers,
    refactoring_jobs,
)
from codetaste.flows.evaluate.test_jobs import test_handlers, test_jobs
from codetaste.flows.infer.context import InferenceContext
from codetaste.flows.infer.jobs import inference_handlers, inference_jobs
from codetaste.llm.build import check_ledgers
from codetaste.orchestration.budget.cost import BudgetLimits, NamedLimits
from codetaste.orchestration.job import Job, Outcome
from codetaste.orchestration.limit_changes import watch_changes
from codetaste.orchestration.session import open_session
from codetaste.refactorings.service import refactoring_service
from codetaste.report.dry_run import describe_repeats, format_worst_case, prices_to_json
from codetaste.report.live.display import live_display
from codetaste.report.live.logs import logs_folder, run_logs
from codetaste.report.live.progress import RunProgress
from codetaste.report.summary import Summary, render_summary, summary_to_json
from codetaste.run.limits import limiter_summary
from codetaste.run.results import RunContext, collect_results, compare_agents, product_folders
from codetaste.run.services import (
    cpu_count,
    memory_bytes,
    open_environment_context,
    open_models,
    open_rule_tools,
    open_scan_context,
)
from codetaste.run.signals import StopRequest, until_stopped
from codetaste.swe_refactor.report.tables import report_tables
from codetaste.swe_refactor.trials.jobs import trial_handlers, trial_jobs
from codetaste.swe_refactor.trials.open import TrialOpening, open_trials
from codetaste.swe_refactor.trials.results import write_trial_rows
from codetaste.swe_refactor.trials.sources import find_sources
from codetaste.transcripts.timeline.journal_reader import JournalReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from codetaste.flows.agents.run import AgentServices
    from codetaste.flows.context import ModelSet
    from codetaste.llm.metering.metered import MeteredModel
    from codetaste.orchestration.session import Session
    from codetaste.run.config import Config
    from codetaste.run.flow_plan import FlowPlan
    from codetaste.run.plan import RunOptions, RunPlan
    from codetaste.run.resolve import ResolvedConfig
    from codetaste.swe_refactor.report.trial_row import TrialRow
    from codetaste.swe_refactor.trials.context import TrialContext

MODELS_FOLDER = "models"
"""The folder of a run with the ledgers of its models."""
_STRATEGY_TABLES = ("2", "ranking")
"""What the summary shows of strategies; ``codetaste swe-refactor report`` has all tables."""
_GRACE_S, _EXTRACTION_GRACE_S = 20.0, 60.0
"""Seconds for clean-up; longer with agents, whose patches are extracted from large repositories then."""


async def execute_run(planned: RunPlan, options: RunOptions, stop: StopRequest) -> Summary:
    """Execute the planned work and return its summary.

    Raises:
        ConfigError: a model cannot be created, or a new rule engine would make finished passes be done again.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        SandboxError: agents cannot be contained on this machine.
        JournalError: the run directory is in use, damaged, or full.
    """
    config, plan, started_s = planned.limits.config, planned.flows, time.monotonic()
    async with AsyncExitStack() as stack:
        context = await open_run(stack, planned, options)
        models = context.models.models
        outcomes = await run_jobs(context, planned, stop)
        lines = await collect_results(context, outcomes)
        rows = await _write_rows(context, outcomes)
        money = context.session.budget.snapshot()
    comparison, notes = None, list[str]()
    if context.evaluation is not None and plan.steps and not stop.reason:
        comparison, notes = await to_thread.run_sync(compare_agents, plan, context.evaluation)
    return Summary(
        name=config.run.name,
        directory=context.out,
        money=money,
        wall_s=time.monotonic() - started_s,
        lines=lines,
        scripted=[name for name in config.scripted_models() if name in models],
        products=product_folders(context, outcomes),
        prices=planned.dry_run.prices,
        stop_reason=stop.reason,
        comparison=comparison,
        exit_zero=options.exit_zero,
        notes=[*context.progress.tool_failure_notes(), *notes],
        tables=report_tables(rows, _STRATEGY_TABLES) if rows and not stop.reason else (),
    )


async def _write_rows(context: RunContext, outcomes: Mapping[str, Outcome]) -> list[TrialRow]:
    """Write the rows of SWE-Refactor's trials, and return them."""
    if context.strategies is None:
        return []
    load = context.session.record.blobs.load
    return await write_trial_rows(context.plan.strategy_trials, outcomes, context.strategies, load)


async def open_run(stack: AsyncExitStack, planned: RunPlan, options: RunOptions) -> RunContext:
    """Open the parts of a run in their order; ``stack`` closes them."""
    resolved, plan, config = planned.resolved, planned.flows, planned.limits.config
    benchmark, sandbox, out = resolved.benchmark, config.sandbox, planned.limits.directory
    cache = await to_thread.run_sync(cache_dir, notify)
    warnings: list[str] = []
    descriptions, discovery, environments, inference, evaluation = None, None, None, None, None
    if plan.passes or plan.evaluations or plan.tested or plan.refactored:
        scan = await open_scan_context(benchmark, resolved.rules(), cache)
        warnings.extend(filter(None, [scan.engine.warning]))
        _check_engine(planned, options, scan.engine.version)
    if plan.passes:
        tools = await open_rule_tools(benchmark, scan, sandbox)
    models = await stack.enter_async_context(open_models(resolved, out / MODELS_FOLDER))
    if config.describe is not None and plan.descriptions:
        descriptions = DescriptionContext(out, cache, config.describe, benchmark, models, resolved.prompts)
    if config.discover is not None and plan.passes:
        discovery = DiscoveryContext(out, config.discover, models, resolved.tools, resolved.prompts, tools)
    section = config.evaluate or EvaluateConfig()
    for line in (*warnings, *planned.dry_run.notes, format_worst_case(planned.dry_run)):
        notify(line)
    progress = RunProgress()
    session = await _open_session(stack, planned, models.models, progress, _repeated_keys(planned, options))
    await to_thread.run_sync(check_ledgers, out / MODELS_FOLDER, session.history.calls)
    # Files of an earlier process in the run's folder are removed now that the session has locked it.
    agent_configs: dict[str, Mapping[str, Any]] = {}
    if plan.steps or plan.environments or plan.studies:
        agents = AgentSet(config.used_agents(), resolved.adapters, models, resolved.prompts)
        services = open_agent_services(agents, sandbox, out, cache, notify)
        opened = await stack.enter_async_context(services)
        if plan.environments:
            opening = open_environment_context(resolved, opened, models, session.note)
            environments = await stack.enter_async_context(opening)
            await environments.check_engine(plan.environments)
    if plan.steps:
        inference = InferenceContext(benchmark, models, resolved.prompts, opened)
        agent_configs = {agent.id: inference.agent_config(agent) for agent in config.used_agents()}
    studies = await _study_context(resolved, plan, models, opened) if plan.studies else None
    if plan.evaluations or plan.tested or plan.refactored:
        references = await to_thread.run_sync(
            load_references, benchmark, (*plan.evaluations, *plan.refactored)
        )
        evaluation = EvaluationContext(benchmark, out, section, scan, references, agent_configs)
        await to_thread.run_sync(evaluation.remove_scratch)
    refactorings = await _open_refactorings(stack, plan, evaluation, cache)
    strategies = await _open_strategies(stack, resolved, plan, models, out) if plan.strategy_trials else None
    flows = (descriptions, discovery, environments, inference, evaluation, refactorings, strategies, studies)
    return RunContext(out, plan, session, progress, models, *flows)


async def _study_context(
    resolved: ResolvedConfig, plan: FlowPlan, models: ModelSet, agents: AgentServices
) -> StudyContext:
    """Return what case studies share."""
    section = resolved.config.case_study
    assert section is not None  # noqa: S101 - its studies are planned
    methods = {each.subject.id: each.subject.method for each in plan.studies}
    clones = [resolved.base_dir / path.expanduser() for path in section.repositories]
    sources = await find_sources(filter(None, methods.values()), clones)
    journal = JournalReader(plan.studies[0].run)
    await to_thread.run_sync(journal.poll)
    shared = resolved.prompts, agents, resolved.adapters
    return StudyContext(resolved.benchmark, models, *shared, section.tries, sources, journal)


async def _open_strategies(
    stack: AsyncExitStack, resolved: ResolvedConfig, plan: FlowPlan, models: ModelSet, out: Path
) -> TrialContext:
    """Open what the trials of SWE-Refactor share."""
    config, cache = resolved.config, await to_thread.run_sync(cache_dir, notify)
    agents = AgentSet(config.used_agents(), resolved.adapters, models, resolved.prompts)
    assert config.swe_refactor is not None  # noqa: S101 - its trials are planned
    opening = TrialOpening(
        plan.strategy_trials, config.swe_refactor, config.sandbox, resolved.base_dir, out, cache, agents
    )
    return await stack.enter_async_context(open_trials(opening, cpu_count(), notify))


async def _open_refactorings(
    stack: AsyncExitStack, plan: FlowPlan, evaluation: EvaluationContext | None, cache: Path
) -> RefactoringContext | None:
    """Open the service that compares refactorings, if the run does."""
    if evaluation is None or not plan.refactored:
        return None
    service = refactoring_service(evaluation.config.refactoring_miner, cache)
    return RefactoringContext(evaluation, await stack.enter_async_context(service))


def _repeated_keys(planned: RunPlan, options: RunOptions) -> frozenset[str]:
    """Return the keys of the jobs whose results are discarded, so that they are done again."""
    selected = planned.flows.selected_keys
    if options.rerun:
        return selected
    return selected & planned.earlier.failed if options.rerun_failed and planned.earlier else frozenset()


def _check_engine(planned: RunPlan, options: RunOptions, version: str) -> None:
    """Check that a new version of the rule engine does not make finished passes be bought again, unasked."""
    if planned.earlier is None or options.rerun or options.yes:
        return
    if repeats := describe_repeats(planned.dry_run.with_work(planned.earlier.with_engine(version))):
        raise ConfigError(f"{repeats}; pass --yes to do so, or give the run another name")


async def _open_session(
    stack: AsyncExitStack,
    planned: RunPlan,
    models: Mapping[str, MeteredModel],
    progress: RunProgress,
    repeated: frozenset[str],
) -> Session:
    """Open the displays and the session, apply the limits, and journal what this session starts with."""
    limits, plan, config, out = planned.limits, planned.flows, planned.limits.config, planned.limits.directory
    observer = await stack.enter_async_context(live_display(progress, config.run.name, sys.stderr))
    logs = await stack.enter_async_context(run_logs(logs_folder(out), lambda text: notify(printable(text))))
    opening = open_session(
        out,
        BudgetLimits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
        capacities={
            "jobs": config.run.concurrency,
            "sandbox": config.sandbox.max,
            "cpu": cpu_count(),
            "memory": memory_bytes(),
            **{each.repository: 1 for each in plan.environments if each.agent is not None},
        },
        observers=[observer, logs],
        rerun=repeated,
        grace_s=_EXTRACTION_GRACE_S if plan.runs_agents else _GRACE_S,
    )
    session = await stack.enter_async_context(opening)
    frozen = _frozen_config(limits.base, planned.resolved)
    await to_thread.run_sync(write_atomically, out / RUN_CONFIG_FILE, frozen)
    await to_thread.run_sync(limits.drop_stale)
    await limits.apply_initial(session, models)
    session.record.note({"event": "capacity", "resource": "cpu", "capacity": cpu_count()})
    for name, price in prices_to_json(planned.dry_run.prices).items():
        session.record.note(
            {"event": "price", "model": name, "price": price["price"], "source": price["source"]}
        )
    progress.limiter_summary = partial(limiter_summary, models)
    progress.root = session.budget.snapshot()
    progress.earlier_wall_s = progress.root.wall_s
    return session


def _frozen_config(config: Config, resolved: ResolvedConfig) -> str:
    """Return ``config`` as JSON, with absolute paths to the benchmark, and to instances of SWE-Refactor."""
    benchmark = resolved.benchmark
    paths: dict[str, object] = {"repos": benchmark.repos}
    if config.benchmark.path != QUICKSTART:
        paths["path"] = str(benchmark.root.absolute())
    sections: dict[str, object] = {"benchmark": config.benchmark.model_copy(update=paths)}
    methods = config.swe_refactor
    if methods is not None and methods.instances is not None:
        absolute = [
            (resolved.base_dir / path.expanduser()).absolute()
            for path in (methods.instances, *methods.repositories)
        ]
        update = {"instances": absolute[0], "repositories": tuple(absolute[1:])}
        sections["swe_refactor"] = methods.model_copy(update=update)
    return config.model_copy(update=sections).model_dump_json(indent=2)


async def run_jobs(context: RunContext, planned: RunPlan, stop: StopRequest) -> dict[str, Outcome]:
    """Run the jobs of an open run to their end, or until ``stop``; return how they ended, by key.

    Raises:
        JournalError: the journal cannot be written.
    """
    session, outcomes = context.session, dict[str, Outcome]()
    await _add_jobs(context)
    stop.session = session
    apply_changes = partial(planned.limits.apply, session, context.models.models)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_changes, planned.limits.directory, apply_changes, session.note)
        outcomes = await session.run()
        tasks.cancel_scope.cancel()
    return outcomes


async def _add_jobs(context: RunContext) -> None:
    """Add the jobs of all flows and their handlers; a job that several flows need is added once."""
    plan, session = context.plan, context.session
    jobs: list[Job] = []
    if context.descriptions is not None:
        session.add_handlers(description_handlers(context.descriptions))
        jobs.extend(description_jobs(plan.descriptions, context.descriptions, (NamedLimits("describe"),)))
    if context.discovery is not None:
        session.add_handlers(discovery_handlers(context.discovery))
        jobs.extend(discovery_jobs(plan.passes, context.discovery, (NamedLimits("discover"),)))
    if context.environments is not None:
        session.add_handlers(environment_handlers(context.environments))
        session.repeat(await lost_images(plan.environments, context.environments, session.history))
        limits = (NamedLimits("environment"),)
        made = await to_thread.run_sync(environment_jobs, plan.environments, context.environments, limits)
        jobs.extend(made)
    if context.inference is not None:
        session.add_handlers(inference_handlers(context.inference))
        jobs.extend(inference_jobs(plan.steps, context.inference, (NamedLimits("infer"),)))
    if context.evaluation is not None:
        session.add_handlers(evaluation_handlers(context.evaluation))
        budget = (NamedLimits("evaluate"),)
        jobs.extend(await evaluation_jobs(plan.evaluations, context.evaluation, budget, cpu_count()))
        if context.environments is not None:
            suites = context.environments.suites
            session.add_handlers(test_handlers(context.evaluation, suites))
            jobs.extend(test_jobs(plan.tested, suites, budget))
        if context.refactorings is not None:
            session.add_handlers(refactoring_handlers(context.refactorings))
            jobs.extend(refactoring_jobs(plan.refactored, context.refactorings, budget))
    if context.strategies is not None:
        session.add_handlers(trial_handlers(context.strategies))
        budget = (NamedLimits("strategies"),)
        jobs.extend(await trial_jobs(plan.strategy_trials, context.strategies, budget))
    if context.studies is not None:
        session.add_handlers(study_handlers(context.studies))
        jobs.extend(study_jobs(plan.studies, context.studies, (NamedLimits("case_study"),)))
    session.add(*_needed_jobs(jobs, plan.selected_keys))


def _needed_jobs(jobs: Iterable[Job], selected: Iterable[str]) -> list[Job]:
    """Return the jobs with the keys ``selected``, and all that they need, each once."""
    made: dict[str, Job] = {}
    for job in jobs:
        made.setdefault(job.key, job)
    needed, rest = dict[str, Job](), [key for key in made if key in set(selected)]
    while rest:
        job = made[rest.pop()]
        needed[job.key] = job
        rest.extend(need for need in job.needs if need not in needed)
    return [job for key, job in made.items() if key in needed]


async def run_and_report(planned: RunPlan, options: RunOptions) -> int:
    """Execute the plan and print its summary; see ``run`` for the exit code.

    Raises:
        ConfigError: a model cannot be created.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    stop = StopRequest()
    summary = await until_stopped(stop, lambda: execute_run(planned, options, stop))
    if summary is not None:
        width = width_of(result_stream())
        print_result(
            json_document(summary_to_json(summary))
            if options.as_json
            else render_summary(summary, width, coloured=result_is_coloured())
        )
        return summary.exit_code
    if options.as_json:
        print_result(
            error_to_json(Cause.CANCELLED, [f"stopped before the work began: {stop.reason}"], STOPPED)
        )
    return STOPPED
