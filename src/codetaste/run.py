"""Running a config: ``python -m codetaste.run config.toml``, the same as ``codetaste run config.toml``."""

from __future__ import annotations

if __name__ == "__main__":
    from codetaste.early import leave_quietly

    leave_quietly()

import json
import signal
import sys
import time
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING, Annotated

import anyio
from anyio import to_thread
from cyclopts import App, Parameter

from codetaste.assembly import assemble, model_digest, open_models, surroundings
from codetaste.atomic import write_atomically
from codetaste.command import error_json, guarded, launch, say, tell
from codetaste.config import read_config, suggestion
from codetaste.errors import Cause, ConfigError
from codetaste.flows import discover, products
from codetaste.limits import LiveLimits
from codetaste.orchestration.control import watch_changes
from codetaste.orchestration.job import Status
from codetaste.orchestration.money import Limits
from codetaste.orchestration.session import open_session
from codetaste.report import plans
from codetaste.report.live import shown
from codetaste.report.logs import logged, logs_folder
from codetaste.report.plans import Plan, PlannedJob
from codetaste.report.progress import Progress, printable
from codetaste.report.summary import Line, Summary, as_json, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from anyio.abc import TaskStatus

    from codetaste.config import Config
    from codetaste.flows.discover import Crew, Pass, Surroundings
    from codetaste.llm.pricing import PriceEntry
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.session import Session

_STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PATIENCE = 2

app = App(name="codetaste.run", help="Run the flows of a config file.", version_flags=[])


@dataclass(frozen=True, slots=True)
class Options:
    """How a config is run. ``only`` are globs on job keys."""

    only: tuple[str, ...] = ()
    dry_run: bool = False
    rerun: bool = False
    json: bool = False


@app.default
def run(
    config: Path,
    /,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),
    only: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    rerun: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Run the flows of a config file, going on where an earlier run of the same name ended.

    Args:
        config: The TOML file.
        set_: Lay a value over the file: ``--set run.budget_usd=5``. May be given several times.
        only: Run only jobs whose key fits this glob, and what they need.
        dry_run: Show the jobs, what they need and what they can cost at most; do nothing.
        rerun: Do finished work again (that of ``--only``, where given). What it cost stays spent; what was
            interrupted goes on.
        json_: Print the result as JSON on standard output.

    Returns:
        The exit code: 0 when every job has a result, 1 when one has none, 2 for bad input or a missing
        tool, 130 when it was stopped.
    """
    options = Options(only, dry_run, rerun, json_)
    return guarded(lambda: anyio.run(execute, config, tuple(set_), options), as_json=json_)


async def execute(path: Path, settings: Sequence[str], options: Options) -> int:
    """Run the config at ``path``; see ``run`` for the exit code.

    Raises:
        ConfigError: bad input, all of it at once.
        ToolMissing: commands cannot be contained here, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    stop = Stop()
    text, code = "", 130
    async with anyio.create_task_group() as tasks:
        stop.scope = tasks.cancel_scope
        await tasks.start(_listen, stop)
        text, code = await _execute(path, settings, options, stop)
        tasks.cancel_scope.cancel()
    if text:
        say(text)
    elif options.json:
        say(error_json(Cause.CANCELLED, [f"stopped before the work began: {stop.why}"], code))
    return code


async def _execute(path: Path, settings: Sequence[str], options: Options, stop: Stop) -> tuple[str, int]:
    """Do what ``execute`` says; returns the text of the result and the exit code."""
    base = read_config(path, settings)
    live = await to_thread.run_sync(LiveLimits.of, base, base.run.out / base.run.name)
    config = live.config
    for line in live.told:
        tell(line)
    try:
        assembly = assemble(config, path.parent)
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from error
    if config.discover is None:
        raise ConfigError(f"{path}: nothing to do: there is no section of a flow, such as [discover]")
    passes = _chosen(discover.plan(config.discover, assembly.instances, config.labels()), options.only)
    assembly.benchmark.check_descriptions({each.instance.id: each.instance for each in passes}.values())
    plan = _plan(config, passes, assembly.prices())
    if options.dry_run:
        return plans.render(plan, as_json=options.json), 0
    out = config.run.out / config.run.name
    around = await surroundings(assembly.benchmark, out, config.rules, config.sandbox)
    async with open_models(assembly, out / "models") as models:
        digests = {model.id: model_digest(model, assembly.base_dir) for model in assembly.used_models()}
        crew = discover.Crew(models, digests, assembly.tools)
        summary = await _run(live, passes, plan, crew, around, options, stop)
    text = json.dumps(as_json(summary), indent=2) if options.json else render(summary)
    return text, summary.exit_code


def _chosen(passes: Sequence[Pass], only: Sequence[str]) -> tuple[Pass, ...]:
    """Keep the passes whose key fits one of the globs ``only``.

    Raises:
        ConfigError: a glob fits none.
    """
    for glob in only:
        if not any(fnmatchcase(each.key, glob) for each in passes):
            raise ConfigError(f"--only {glob}: fits no job{suggestion(glob, [each.key for each in passes])}")
    return tuple(each for each in passes if not only or any(fnmatchcase(each.key, glob) for glob in only))


async def _run(
    live: LiveLimits,
    passes: Sequence[Pass],
    plan: Plan,
    crew: Crew,
    around: Surroundings,
    options: Options,
    stop: Stop,
) -> Summary:
    """Do the work of ``passes`` and sum it up."""
    config = live.config
    assert config.discover is not None  # noqa: S101 - ``execute`` has checked it
    progress, began_s = Progress(), time.monotonic()
    for line in (*around.warnings, plans.worst_case_line(plan)):
        tell(line)
    async with (
        shown(progress, config.run.name, sys.stderr) as observer,
        logged(logs_folder(around.out), lambda text: tell(printable(text))) as logs,
        open_session(
            around.out,
            Limits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max},
            observers=[observer, logs],
            rerun={each.key for each in passes} if options.rerun else frozenset(),
        ) as session,
    ):
        await to_thread.run_sync(
            write_atomically, around.out / "config.json", live.base.model_dump_json(indent=2)
        )
        await to_thread.run_sync(live.forget_stale)
        await live.begin(session, crew.models)
        for name, told in plans.prices_json(plan.prices).items():
            session.record.note({"event": "price", "model": name, **told})
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


async def _work(session: Session, live: LiveLimits, crew: Crew) -> dict[str, Outcome]:
    """Run the session's jobs while its limits may change."""
    outcomes: dict[str, Outcome] = {}
    obey = partial(live.obey, session, crew.models)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch_changes, live.directory, obey, session.tell)
        outcomes = await session.run()
        tasks.cancel_scope.cancel()
    return outcomes


@dataclass(slots=True)
class Stop:
    """Why the user stopped the run, "" if nobody did, and what there is to be stopped."""

    why: str = ""
    asked: int = 0
    session: Session | None = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)

    def ask(self, why: str) -> None:
        """Stop in good order at the first request; cut clean-up short at the second; give up at the third."""
        self.why, self.asked = why, self.asked + 1
        if self.session is None or self.asked > _PATIENCE:
            self.scope.cancel()
        else:
            self.session.drain(why)


async def _listen(stop: Stop, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
    """Let Ctrl-C, a termination, and a terminal that goes away stop the run at any time."""
    try:
        with anyio.open_signal_receiver(*_STOPPING) as signals:
            task_status.started()
            async for number in signals:
                stop.ask(signal.Signals(number).name)
    finally:
        if stop.asked:
            # An impatient Ctrl-C that comes while the process is leaving must not spoil its exit code.
            for number in _STOPPING:
                signal.signal(number, signal.SIG_IGN)


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


def _plan(config: Config, passes: Sequence[Pass], prices: Mapping[str, PriceEntry]) -> Plan:
    assert config.discover is not None  # noqa: S101 - ``execute`` has checked it
    planned = {each.sources: PlannedJob(each.sources, (), "") for each in passes}
    planned |= {each.key: PlannedJob(each.key, (each.sources,), each.model_id) for each in passes}
    return Plan(
        tuple(planned.values()),
        discover.worst_case_usd(config.discover, passes),
        config.run.budget_usd,
        prices,
    )


def main() -> None:
    """Run the command line of ``python -m codetaste.run``."""
    launch(app)


if __name__ == "__main__":
    main()
