"""The work of a run, from a plan to a summary: everything that a dry run leaves out."""

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
    "evaluate.tests: test runs in containers are not built yet: PASS comes from recorded test metrics alone, "
    "and is not known without"
)
_GRACE_S, _HARVEST_GRACE_S = 20.0, 60.0
"""What clean-up may take: what agents leave in large repositories is read then."""


async def carry_out(
    assembly: Assembly, live: LiveLimits, wanted: Agenda, plan: Plan, *, rerun: bool, stop: Stop
) -> Summary:
    """Do the work that is ``wanted`` and sum it up.

    Raises:
        ConfigError: a model cannot be made.
        ToolMissing: commands cannot be contained here, or there is no rule engine.
        SandboxError: nothing here can contain an agent.
        JournalError: the run directory is in use, damaged, or full.
    """
    config = live.config
    out = config.run.out / config.run.name
    around: Surroundings | None = None
    if wanted.passes:
        around = await surroundings(assembly.benchmark, out, assembly.rules(), config.sandbox, tell)
    lab: Laboratory | None = None
    if wanted.scorings:
        lab = await _laboratory(assembly, config, wanted, around)
    async with open_models(assembly, out / "models") as models:
        used = assembly.used_models()
        digests = {model.id: model_digest(model, assembly.base_dir) for model in used}
        opening: AbstractAsyncContextManager[Site | None] = nullcontext()
        if wanted.steps:
            known = around or lab
            cache = await to_thread.run_sync(cache_dir, tell) if known is None else known.cache
            cast = Cast(models, used, digests, assembly.adapters)
            opening = open_site(assembly.benchmark, out, cache, config.sandbox, cast, tell)
        crew = discover.Crew(models, digests, assembly.tools)
        ground = Ground(out, _kept(live.base, assembly.benchmark), crew, around, lab=lab)
        return await _run(live, wanted, plan, ground, opening, rerun=rerun, stop=stop)


async def _laboratory(
    assembly: Assembly, config: Config, wanted: Agenda, around: Surroundings | None
) -> Laboratory:
    """Find what evaluations need; the rule engine of rule discovery is theirs, too."""
    benchmark, section = assembly.benchmark, config.evaluate or EvaluateConfig()
    warnings = [_NO_TEST_RUNS] if section.tests else []
    if around is not None:
        cache, ignore, scanner = around.cache, around.ignore, around.scanner
        version, engine = around.engine_version, around.engine
    else:
        cache, ignore = await to_thread.run_sync(cache_dir, tell), benchmark.ignore_text()
        scanner, found_engine = await open_scanner(assembly.rules(), ignore, tell, cache=cache)
        version, engine = found_engine.version, found_engine.label
        warnings += filter(None, [found_engine.warning])
    yardsticks = await to_thread.run_sync(measure, benchmark, wanted.scorings)
    out = config.run.out / config.run.name
    return Laboratory(
        benchmark, out, cache, section, scanner, version, engine, ignore, yardsticks, tuple(warnings)
    )


async def _run(
    live: LiveLimits,
    wanted: Agenda,
    plan: Plan,
    ground: Ground,
    opening: AbstractAsyncContextManager[Site | None],
    *,
    rerun: bool,
    stop: Stop,
) -> Summary:
    config, crew, lab = live.config, ground.crew, ground.lab
    progress, began_s = Progress(), time.monotonic()
    warnings = (*(ground.around.warnings if ground.around else ()), *(lab.warnings if lab else ()))
    for line in dict.fromkeys((*warnings, plans.worst_case_line(plan))):
        tell(line)
    async with (
        shown(progress, config.run.name, sys.stderr) as observer,
        logged(logs_folder(ground.out), lambda text: tell(printable(text))) as logs,
        open_session(
            ground.out,
            Limits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max, "cpu": cpus()},
            observers=[observer, logs],
            rerun=wanted.chosen if rerun else frozenset(),
            grace_s=_HARVEST_GRACE_S if wanted.steps else _GRACE_S,
        ) as session,
        # Only for whoever owns the run: it removes what an earlier process has left in its folder.
        opening as site,
    ):
        ground = replace(ground, site=site, lab=lab and replace(lab, site=site))
        await to_thread.run_sync(write_atomically, ground.out / "config.json", ground.config)
        await to_thread.run_sync(live.forget_stale)
        await live.begin(session, crew.models)
        _note_start(session, plan, progress, crew)
        session.add(*await _jobs(config, wanted, ground, session))
        stop.session = session
        outcomes = await _work(session, live, crew)
        lines = await concluded(wanted, outcomes, ground, session)
        money = session.budget.snapshot()
    comparison, notes = None, list[str]()
    if lab is not None and wanted.steps and not stop.why:
        comparison, notes = await to_thread.run_sync(compared, wanted, lab)
    return Summary(
        name=config.run.name,
        directory=ground.out,
        money=money,
        wall_s=time.monotonic() - began_s,
        lines=lines,
        scripted=[
            model.id for model in config.models if model.id in crew.models and model.provider == "scripted"
        ],
        products=folders(wanted, outcomes, ground),
        prices=plan.prices,
        stopped=stop.why,
        comparison=comparison,
        notes=notes,
    )


def _kept(config: Config, benchmark: Benchmark) -> str:
    """Return ``config`` as JSON; its benchmark is found by it from anywhere."""
    found: dict[str, object] = {"repos": benchmark.repos}
    if config.benchmark.path != QUICKSTART:
        found["path"] = str(benchmark.root.absolute())
    section = config.benchmark.model_copy(update=found)
    return config.model_copy(update={"benchmark": section}).model_dump_json(indent=2)


def _note_start(session: Session, plan: Plan, progress: Progress, crew: Crew) -> None:
    """Write down what the run starts with, and let ``progress`` know what it had used before."""
    session.record.note({"event": "capacity", "resource": "cpu", "capacity": cpus()})
    for name, told in plans.prices_json(plan.prices).items():
        session.record.note({"event": "price", "model": name, **told})
    progress.gauges = partial(slots_in_use, crew.models)
    progress.root = session.budget.snapshot()
    progress.earlier_s = progress.root.wall_s


async def _jobs(config: Config, wanted: Agenda, ground: Ground, session: Session) -> list[Job]:
    """Make the jobs of all flows; what several of them need is there once."""
    made: dict[str, Job] = {}
    if config.discover is not None and ground.around is not None:
        budget = session.budget.child("discover")
        found = discover.jobs(config.discover, wanted.passes, ground.crew, ground.around, budget)
        made.update({job.key: job for job in found})
    if ground.site is not None:
        for job in infer.jobs(wanted.steps, ground.site, session.budget.child("infer")):
            made.setdefault(job.key, job)
    if ground.lab is not None:
        await to_thread.run_sync(ground.lab.sweep)
        for job in await evaluate.jobs(wanted.scorings, ground.lab, session.budget.child("evaluate"), cpus()):
            made.setdefault(job.key, job)
    return list(made.values())


def cpus() -> int:
    """Return how many CPUs this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


async def _work(session: Session, live: LiveLimits, crew: Crew) -> dict[str, Outcome]:
    """Run the session's jobs while its limits may change."""
    outcomes: dict[str, Outcome] = {}
    obey = partial(live.obey, session, crew.models)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_changes, live.directory, obey, session.tell)
        outcomes = await session.run()
        tasks.cancel_scope.cancel()
    return outcomes
