"""Execute a planned run: open its services and session, run the jobs, sum up the results."""

from __future__ import annotations

import os
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.assembly import cache_dir, model_digest, open_models, open_scanner, surroundings
from codetaste.atomic import write_atomically
from codetaste.benchmark.catalog import QUICKSTART
from codetaste.command import tell
from codetaste.ending import Ground, compared, concluded, folders
from codetaste.evaluation.config import EvaluateConfig
from codetaste.flows import discover, evaluate, infer
from codetaste.flows.laboratory import Laboratory, measure
from codetaste.flows.site import Cast, open_site
from codetaste.limits import slots_in_use
from codetaste.orchestration.control import watch_changes
from codetaste.orchestration.money import Limits
from codetaste.orchestration.session import open_session
from codetaste.report import plans
from codetaste.report.live import shown
from codetaste.report.logs import logged, logs_folder
from codetaste.report.progress import Progress, printable
from codetaste.report.summary import Summary

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from codetaste.assembly import Assembly
    from codetaste.benchmark.catalog import Benchmark
    from codetaste.config import Config
    from codetaste.flows.agenda import Agenda
    from codetaste.flows.discover import Crew, Surroundings
    from codetaste.flows.site import Site
    from codetaste.limits import LiveLimits
    from codetaste.orchestration.job import Job, Outcome
    from codetaste.orchestration.session import Session
    from codetaste.report.plans import Plan
    from codetaste.stopping import Stop

_NO_TEST_RUNS = (
    "evaluate.tests: running tests in containers is not implemented yet; PASS is computed from recorded "
    "results and is unknown where there are none"
)
_GRACE_S, _EXTRACTION_GRACE_S = 20.0, 60.0
"""Seconds for clean-up; longer with agents, whose patches are extracted from large repositories then."""


async def carry_out(
    resolved: Assembly, limits: LiveLimits, agenda: Agenda, plan: Plan, *, rerun: bool, stop: Stop
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
    discovery: Surroundings | None = None
    if agenda.passes:
        discovery = await surroundings(resolved.benchmark, out, resolved.rules(), config.sandbox, tell)
    lab: Laboratory | None = None
    if agenda.scorings:
        lab = await _laboratory(resolved, config, agenda, discovery)
    async with open_models(resolved, out / "models") as models:
        used = resolved.used_models()
        digests = {model.id: model_digest(model, resolved.base_dir) for model in used}
        opening_inference: AbstractAsyncContextManager[Site | None] = nullcontext()
        if agenda.steps:
            opened = discovery or lab
            cache = await to_thread.run_sync(cache_dir, tell) if opened is None else opened.cache
            cast = Cast(models, used, digests, resolved.adapters)
            opening_inference = open_site(resolved.benchmark, out, cache, config.sandbox, cast, tell)
        crew = discover.Crew(models, digests, resolved.tools)
        context = Ground(out, _frozen_config(limits.base, resolved.benchmark), crew, discovery, lab=lab)
        return await _run_session(limits, agenda, plan, context, opening_inference, rerun=rerun, stop=stop)


async def _laboratory(
    resolved: Assembly, config: Config, agenda: Agenda, discovery: Surroundings | None
) -> Laboratory:
    """Open what evaluations need; the rule engine of an opened discovery context is shared."""
    benchmark, section = resolved.benchmark, config.evaluate or EvaluateConfig()
    warnings = [_NO_TEST_RUNS] if section.tests else []
    if discovery is not None:
        cache, ignore, scanner = discovery.cache, discovery.ignore, discovery.scanner
        version, engine = discovery.engine_version, discovery.engine
    else:
        cache, ignore = await to_thread.run_sync(cache_dir, tell), benchmark.ignore_text()
        scanner, found_engine = await open_scanner(resolved.rules(), ignore, tell, cache=cache)
        version, engine = found_engine.version, found_engine.label
        warnings += filter(None, [found_engine.warning])
    references = await to_thread.run_sync(measure, benchmark, agenda.scorings)
    out = config.run.out / config.run.name
    return Laboratory(
        benchmark, out, cache, section, scanner, version, engine, ignore, references, tuple(warnings)
    )


async def _run_session(
    limits: LiveLimits,
    agenda: Agenda,
    plan: Plan,
    context: Ground,
    opening_inference: AbstractAsyncContextManager[Site | None],
    *,
    rerun: bool,
    stop: Stop,
) -> Summary:
    config, crew, lab = limits.config, context.crew, context.lab
    progress, started_s = Progress(), time.monotonic()
    warnings = (*(context.around.warnings if context.around else ()), *(lab.warnings if lab else ()))
    for line in dict.fromkeys((*warnings, plans.worst_case_line(plan))):
        tell(line)
    async with (
        shown(progress, config.run.name, sys.stderr) as observer,
        logged(logs_folder(context.out), lambda text: tell(printable(text))) as logs,
        open_session(
            context.out,
            Limits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max, "cpu": cpus()},
            observers=[observer, logs],
            rerun=agenda.chosen if rerun else frozenset(),
            grace_s=_EXTRACTION_GRACE_S if agenda.steps else _GRACE_S,
        ) as session,
        # Opened after the session, which locks the run: it removes files of an earlier process in its folder.
        opening_inference as site,
    ):
        context = replace(context, site=site, lab=lab and replace(lab, site=site))
        await to_thread.run_sync(write_atomically, context.out / "config.json", context.config)
        await to_thread.run_sync(limits.forget_stale)
        await limits.begin(session, crew.models)
        _journal_start(session, plan, progress, crew)
        session.add(*await _jobs(config, agenda, context, session))
        stop.session = session
        outcomes = await _run_jobs(session, limits, crew)
        lines = await concluded(agenda, outcomes, context, session)
        money = session.budget.snapshot()
    comparison, notes = None, list[str]()
    if lab is not None and agenda.steps and not stop.why:
        comparison, notes = await to_thread.run_sync(compared, agenda, lab)
    return Summary(
        name=config.run.name,
        directory=context.out,
        money=money,
        wall_s=time.monotonic() - started_s,
        lines=lines,
        scripted=[
            model.id for model in config.models if model.id in crew.models and model.provider == "scripted"
        ],
        products=folders(agenda, outcomes, context),
        prices=plan.prices,
        stopped=stop.why,
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


def _journal_start(session: Session, plan: Plan, progress: Progress, crew: Crew) -> None:
    """Journal the CPUs and prices of this session, and give ``progress`` the totals of earlier sessions."""
    session.record.note({"event": "capacity", "resource": "cpu", "capacity": cpus()})
    for name, price in plans.prices_json(plan.prices).items():
        session.record.note({"event": "price", "model": name, **price})
    progress.gauges = partial(slots_in_use, crew.models)
    progress.root = session.budget.snapshot()
    progress.earlier_s = progress.root.wall_s


async def _jobs(config: Config, agenda: Agenda, context: Ground, session: Session) -> list[Job]:
    """Create the jobs of all flows; a job that several flows need is created once."""
    jobs: dict[str, Job] = {}
    if config.discover is not None and context.around is not None:
        budget = session.budget.child("discover")
        passes = discover.jobs(config.discover, agenda.passes, context.crew, context.around, budget)
        jobs.update({job.key: job for job in passes})
    if context.site is not None:
        for job in infer.jobs(agenda.steps, context.site, session.budget.child("infer")):
            jobs.setdefault(job.key, job)
    if context.lab is not None:
        await to_thread.run_sync(context.lab.sweep)
        for job in await evaluate.jobs(
            agenda.scorings, context.lab, session.budget.child("evaluate"), cpus()
        ):
            jobs.setdefault(job.key, job)
    return list(jobs.values())


def cpus() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _run_jobs(session: Session, limits: LiveLimits, crew: Crew) -> dict[str, Outcome]:
    """Run the session's jobs, and apply changes of its limits meanwhile."""
    outcomes: dict[str, Outcome] = {}
    apply_changes = partial(limits.obey, session, crew.models)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_changes, limits.directory, apply_changes, session.tell)
        outcomes = await session.run()
        tasks.cancel_scope.cancel()
    return outcomes
