"""The work of a run, from a plan to a summary: everything that a dry run leaves out."""

from __future__ import annotations

import os
import sys
import time
from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.assembly import model_digest, open_models, surroundings
from codetaste.atomic import write_atomically
from codetaste.command import tell
from codetaste.flows import discover, products
from codetaste.limits import slots_in_use
from codetaste.orchestration.control import watch_changes
from codetaste.orchestration.job import Status
from codetaste.orchestration.money import Limits
from codetaste.orchestration.session import open_session
from codetaste.report import plans
from codetaste.report.live import shown
from codetaste.report.logs import logged, logs_folder
from codetaste.report.progress import Progress, printable
from codetaste.report.summary import Line, Summary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.assembly import Assembly
    from codetaste.flows.discover import Crew, Surroundings
    from codetaste.flows.passes import Pass
    from codetaste.limits import LiveLimits
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.session import Session
    from codetaste.report.plans import Plan
    from codetaste.stopping import Stop


async def carry_out(
    assembly: Assembly, live: LiveLimits, passes: Sequence[Pass], plan: Plan, *, rerun: bool, stop: Stop
) -> Summary:
    """Do the work of ``passes`` and sum it up.

    Raises:
        ConfigError: a model cannot be made.
        ToolMissing: commands cannot be contained here, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    config = live.config
    out = config.run.out / config.run.name
    around = await surroundings(assembly.benchmark, out, assembly.rules(), config.sandbox, tell)
    async with open_models(assembly, out / "models") as models:
        digests = {model.id: model_digest(model, assembly.base_dir) for model in assembly.used_models()}
        crew = discover.Crew(models, digests, assembly.tools)
        return await _run(live, passes, plan, crew, around, rerun=rerun, stop=stop)


async def _run(
    live: LiveLimits,
    passes: Sequence[Pass],
    plan: Plan,
    crew: Crew,
    around: Surroundings,
    *,
    rerun: bool,
    stop: Stop,
) -> Summary:
    """Do the work of ``passes`` and sum it up."""
    config = live.config
    assert config.discover is not None  # noqa: S101 - whoever planned has checked it
    progress, began_s = Progress(), time.monotonic()
    for line in (*around.warnings, plans.worst_case_line(plan)):
        tell(line)
    async with (
        shown(progress, config.run.name, sys.stderr) as observer,
        logged(logs_folder(around.out), lambda text: tell(printable(text))) as logs,
        open_session(
            around.out,
            Limits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max, "cpu": cpus()},
            observers=[observer, logs],
            rerun={each.key for each in passes} if rerun else frozenset(),
        ) as session,
    ):
        await to_thread.run_sync(
            write_atomically, around.out / "config.json", live.base.model_dump_json(indent=2)
        )
        await to_thread.run_sync(live.forget_stale)
        await live.begin(session, crew.models)
        session.record.note({"event": "capacity", "resource": "cpu", "capacity": cpus()})
        for name, told in plans.prices_json(plan.prices).items():
            session.record.note({"event": "price", "model": name, **told})
        progress.gauges = partial(slots_in_use, crew.models)
        progress.root = session.budget.snapshot()
        progress.earlier_s = progress.root.wall_s
        session.add(*discover.jobs(config.discover, passes, crew, around, session.budget.child("discover")))
        stop.session = session
        outcomes = await _work(session, live, crew)
        await products.write_products(passes, outcomes, around, session.record.blobs)
        money = session.budget.snapshot()
    return Summary(
        name=config.run.name,
        directory=around.out,
        money=money,
        wall_s=time.monotonic() - began_s,
        lines=_lines(passes, outcomes, around),
        scripted=[
            model.id for model in config.models if model.id in crew.models and model.provider == "scripted"
        ],
        products={each.label: products.product(each, around) for each in passes if outcomes[each.key].usable},
        prices=plan.prices,
        stopped=stop.why,
    )


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


def _lines(passes: Sequence[Pass], outcomes: Mapping[str, Outcome], around: Surroundings) -> list[Line]:
    lines = [
        Line(outcomes[key], f"sources of {each.instance.id}", "")
        for key, each in {each.sources: each for each in passes}.items()
        if not outcomes[key].usable and outcomes[key].status is not Status.SKIPPED
    ]
    for each in passes:
        outcome = outcomes[each.key]
        path = str(products.rules_file(each, around)) if outcome.usable else ""
        lines.append(Line(outcome, each.title, each.model_id, discover.found(outcome), path))
    return lines
