"""Execute a planned run: open its services and session, run the jobs, sum up the results."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.benchmark.benchmark import QUICKSTART
from codetaste.console import error_to_json, notify, print_result
from codetaste.core.files import write_atomically
from codetaste.core.paths import cache_dir
from codetaste.core.text import printable
from codetaste.errors import Cause
from codetaste.evaluation.config import EvaluateConfig
from codetaste.flows.agents.context import ModelSet, open_inference_context
from codetaste.flows.discover import jobs as discover
from codetaste.flows.discover.context import DiscoveryModels
from codetaste.flows.evaluate import jobs as evaluate
from codetaste.flows.evaluate.context import EvaluationContext, load_references
from codetaste.flows.infer import jobs as infer
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.limit_changes import watch_changes
from codetaste.orchestration.session import open_session
from codetaste.report import dry_run as plans
from codetaste.report.dry_run import DryRun
from codetaste.report.live.display import live_display
from codetaste.report.live.logs import logs_folder, run_logs
from codetaste.report.live.progress import RunProgress
from codetaste.report.summary import Summary
from codetaste.run.limits import RuntimeLimits, limiter_summary
from codetaste.run.results import RunContext, collect_results, compare_agents, product_folders
from codetaste.run.services import model_fingerprint, open_discovery_context, open_models, open_scanner
from codetaste.run.signals import StopRequest, listen_for_signals

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.discover.context import DiscoveryContext
    from codetaste.orchestration.job import Job, Outcome
    from codetaste.orchestration.session import Session
    from codetaste.report.dry_run import DryRun
    from codetaste.run.config import Config
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.plan import FlowPlan, RunPlan
    from codetaste.run.resolve import ResolvedConfig


_NO_TEST_RUNS = (
    "evaluate.tests: running tests in containers is not implemented yet; PASS is computed from recorded "
    "results and is unknown where there are none"
)

_GRACE_S, _EXTRACTION_GRACE_S = 20.0, 60.0
"""Seconds for clean-up; longer with agents, whose patches are extracted from large repositories then."""


async def execute_run(
    resolved: ResolvedConfig,
    limits: RuntimeLimits,
    agenda: FlowPlan,
    plan: DryRun,
    *,
    rerun: bool,
    stop: StopRequest,
) -> Summary:
    """Execute the work in ``agenda`` and return its summary.

    Raises:
        ConfigError: a model cannot be created.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        SandboxError: agents cannot be contained on this machine.
        JournalError: the run directory is in use, damaged, or full.
    """
    config = limits.config
    out = config.run.out / config.run.name
    discovery: DiscoveryContext | None = None
    if agenda.passes:
        discovery = await open_discovery_context(
            resolved.benchmark, out, resolved.rules(), config.sandbox, notify
        )
    lab: EvaluationContext | None = None
    if agenda.evaluations:
        lab = await _laboratory(resolved, config, agenda, discovery)
    async with open_models(resolved, out / "models") as models:
        used = resolved.used_models()
        digests = {model.id: model_fingerprint(model, resolved.base_dir) for model in used}
        opening_inference: AbstractAsyncContextManager[InferenceContext | None] = nullcontext()
        if agenda.steps:
            opened = discovery or lab
            cache = await to_thread.run_sync(cache_dir, notify) if opened is None else opened.cache
            cast = ModelSet(models, used, digests, resolved.adapters)
            opening_inference = open_inference_context(
                resolved.benchmark, out, cache, config.sandbox, cast, notify
            )
        crew = DiscoveryModels(models, digests, resolved.tools)
        context = RunContext(
            out, _frozen_config(limits.base, resolved.benchmark), crew, discovery, evaluation=lab
        )
        return await _run_session(limits, agenda, plan, context, opening_inference, rerun=rerun, stop=stop)


async def _laboratory(
    resolved: ResolvedConfig, config: Config, agenda: FlowPlan, discovery: DiscoveryContext | None
) -> EvaluationContext:
    """Open what evaluations need; the rule engine of an opened discovery context is shared."""
    benchmark, section = resolved.benchmark, config.evaluate or EvaluateConfig()
    warnings = [_NO_TEST_RUNS] if section.tests else []
    if discovery is not None:
        cache, ignore, scanner = discovery.cache, discovery.ignore_text, discovery.scanner
        version, engine = discovery.engine_version, discovery.engine_label
    else:
        cache, ignore = await to_thread.run_sync(cache_dir, notify), benchmark.ignore_text()
        scanner, found_engine = await open_scanner(resolved.rules(), ignore, notify, cache=cache)
        version, engine = found_engine.version, found_engine.label
        warnings += filter(None, [found_engine.warning])
    references = await to_thread.run_sync(load_references, benchmark, agenda.evaluations)
    out = config.run.out / config.run.name
    return EvaluationContext(
        benchmark, out, cache, section, scanner, version, engine, ignore, references, tuple(warnings)
    )


async def _run_session(
    limits: RuntimeLimits,
    agenda: FlowPlan,
    plan: DryRun,
    context: RunContext,
    opening_inference: AbstractAsyncContextManager[InferenceContext | None],
    *,
    rerun: bool,
    stop: StopRequest,
) -> Summary:
    config, crew, lab = limits.config, context.models, context.evaluation
    progress, started_s = RunProgress(), time.monotonic()
    warnings = (*(context.discovery.warnings if context.discovery else ()), *(lab.warnings if lab else ()))
    for line in dict.fromkeys((*warnings, plans.format_worst_case(plan))):
        notify(line)
    async with (
        live_display(progress, config.run.name, sys.stderr) as observer,
        run_logs(logs_folder(context.out), lambda text: notify(printable(text))) as logs,
        open_session(
            context.out,
            BudgetLimits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max, "cpu": cpu_count()},
            observers=[observer, logs],
            rerun=agenda.selected_keys if rerun else frozenset(),
            grace_s=_EXTRACTION_GRACE_S if agenda.steps else _GRACE_S,
        ) as session,
        # Opened after the session, which locks the run: it removes files of an earlier process in its folder.
        opening_inference as site,
    ):
        context = replace(context, inference=site, evaluation=lab and replace(lab, inference=site))
        await to_thread.run_sync(write_atomically, context.out / "config.json", context.config)
        await to_thread.run_sync(limits.drop_stale)
        await limits.apply_initial(session, crew.models)
        _journal_start(session, plan, progress, crew)
        session.add(*await _jobs(config, agenda, context, session))
        stop.session = session
        outcomes = await _run_jobs(session, limits, crew)
        lines = await collect_results(agenda, outcomes, context, session)
        money = session.budget.snapshot()
    comparison, notes = None, list[str]()
    if lab is not None and agenda.steps and not stop.why:
        comparison, notes = await to_thread.run_sync(compare_agents, agenda, lab)
    return Summary(
        name=config.run.name,
        directory=context.out,
        money=money,
        wall_s=time.monotonic() - started_s,
        lines=lines,
        scripted=[
            model.id for model in config.models if model.id in crew.models and model.provider == "scripted"
        ],
        products=product_folders(agenda, outcomes, context),
        prices=plan.prices,
        stop_reason=stop.why,
        comparison=comparison,
        notes=notes,
    )


def _frozen_config(config: Config, benchmark: Benchmark) -> str:
    """Return ``config`` as JSON, with absolute paths to the benchmark."""
    paths: dict[str, object] = {"repos": benchmark.repos}
    if config.benchmark.path != QUICKSTART:
        paths["path"] = str(benchmark.root.absolute())
    section = config.benchmark.model_copy(update=paths)
    return config.model_copy(update={"benchmark": section}).model_dump_json(indent=2)


def _journal_start(session: Session, plan: DryRun, progress: RunProgress, crew: DiscoveryModels) -> None:
    """Journal the CPUs and prices of this session, and give ``progress`` the totals of earlier sessions."""
    session.record.note({"event": "capacity", "resource": "cpu", "capacity": cpu_count()})
    for name, price in plans.prices_to_json(plan.prices).items():
        session.record.note(
            {"event": "price", "model": name, "price": price["price"], "source": price["source"]}
        )
    progress.limiter_summary = partial(limiter_summary, crew.models)
    progress.root = session.budget.snapshot()
    progress.earlier_wall_s = progress.root.wall_s


async def _jobs(config: Config, agenda: FlowPlan, context: RunContext, session: Session) -> list[Job]:
    """Create the jobs of all flows; a job that several flows need is created once."""
    jobs: dict[str, Job] = {}
    if config.discover is not None and context.discovery is not None:
        budget = session.budget.child("discover")
        passes = discover.discovery_jobs(
            config.discover, agenda.passes, context.models, context.discovery, budget
        )
        jobs.update({job.key: job for job in passes})
    if context.inference is not None:
        for job in infer.inference_jobs(agenda.steps, context.inference, session.budget.child("infer")):
            jobs.setdefault(job.key, job)
    if context.evaluation is not None:
        await to_thread.run_sync(context.evaluation.remove_scratch)
        for job in await evaluate.evaluation_jobs(
            agenda.evaluations, context.evaluation, session.budget.child("evaluate"), cpu_count()
        ):
            jobs.setdefault(job.key, job)
    return list(jobs.values())


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _run_jobs(session: Session, limits: RuntimeLimits, crew: DiscoveryModels) -> dict[str, Outcome]:
    """Run the session's jobs, and apply changes of its limits meanwhile."""
    outcomes: dict[str, Outcome] = {}
    apply_changes = partial(limits.apply, session, crew.models)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_changes, limits.directory, apply_changes, session.note)
        outcomes = await session.run()
        tasks.cancel_scope.cancel()
    return outcomes


_STOPPED = 130


async def run_and_report(planned: RunPlan, rerun: bool, as_json: bool) -> int:
    """Execute the plan and print its summary; see ``run`` for the exit code.

    Raises:
        ConfigError: a model cannot be created.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    from codetaste.report.summary import render_summary, summary_to_json  # noqa: PLC0415 - not for a dry run

    stop, summary = StopRequest(), None
    async with anyio.create_task_group() as tasks:
        stop.scope = tasks.cancel_scope
        await tasks.start(listen_for_signals, stop)
        summary = await execute_run(
            planned.resolved, planned.limits, planned.agenda, planned.dry_run, rerun=rerun, stop=stop
        )
        tasks.cancel_scope.cancel()
    if summary is not None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print_result(
            json.dumps(summary_to_json(summary), indent=2) if as_json else render_summary(summary, width)
        )
        return summary.exit_code
    if as_json:
        print_result(error_to_json(Cause.CANCELLED, [f"stopped before the work began: {stop.why}"], _STOPPED))
    return _STOPPED
