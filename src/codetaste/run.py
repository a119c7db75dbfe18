"""Running a config: ``python -m codetaste.run config.toml``, the same as ``codetaste run config.toml``."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING, Annotated

import anyio
from anyio import to_thread
from cyclopts import App, Parameter

from codetaste.assembly import assemble, model_digest, open_models, surroundings
from codetaste.atomic import write_atomically
from codetaste.config import read_config, suggestion
from codetaste.errors import CodetasteError, ConfigError, ToolMissing
from codetaste.flows import discover
from codetaste.orchestration.money import Limits
from codetaste.orchestration.session import open_session
from codetaste.report import plans
from codetaste.report.live import shown
from codetaste.report.plans import Plan, PlannedJob
from codetaste.report.progress import Progress
from codetaste.report.summary import Line, Summary, as_json, render

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from codetaste.config import Config
    from codetaste.flows.discover import Crew, Pass, Surroundings
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.session import Session

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
        rerun: Do finished work again (that of ``--only``, where given). What it cost stays spent.
        json_: Print the result as JSON on standard output.

    Returns:
        The exit code: 0 when every job has a result, 1 when one has none, 2 for bad input or a missing
        tool, 130 when it was stopped.
    """
    options = Options(only, dry_run, rerun, json_)
    return guarded(lambda: anyio.run(execute, config, tuple(set_), options))


def guarded(command: Callable[[], int]) -> int:
    """Run a command; what is wrong with its input is said in one line each, with exit code 2."""
    try:
        return command()
    except CodetasteError as error:
        return _said([error])
    except BrokenPipeError:
        # Whoever read our output has gone, as in "codetaste status RUN | head"; nothing more can be said.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except BaseExceptionGroup as group:
        ours, others = group.split(CodetasteError)
        if ours is None or others is not None:
            raise
        return _said(list(_leaves(ours)))
    except KeyboardInterrupt:
        return 130


def _said(errors: Sequence[BaseException]) -> int:
    for error in errors:
        for line in str(error).splitlines():
            print(f"codetaste: {line}", file=sys.stderr)
    return 2 if any(isinstance(error, ConfigError | ToolMissing) for error in errors) else 1


def _leaves(group: BaseExceptionGroup) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def execute(path: Path, settings: Sequence[str], options: Options) -> int:
    """Run the config at ``path``; see ``run`` for the exit code.

    Raises:
        ConfigError: bad input, all of it at once.
        ToolMissing: commands cannot be contained here, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    config = read_config(path, settings)
    assembly = assemble(config, path.parent)
    if config.discover is None:
        raise ConfigError(f"{path}: nothing to do: there is no section of a flow, such as [discover]")
    passes = _chosen(discover.plan(config.discover, assembly.instances, config.labels()), options.only)
    if options.dry_run:
        print(plans.render(_plan(config, passes), as_json=options.json))
        return 0
    out = config.run.out / config.run.name
    around = await surroundings(assembly.benchmark, out, config.rules, config.sandbox)
    async with open_models(assembly, out / "models") as models:
        digests = {model.id: model_digest(model, assembly.base_dir) for model in assembly.used_models()}
        summary = await _run(config, passes, discover.Crew(models, digests, assembly.tools), around, options)
    print(json.dumps(as_json(summary), indent=2) if options.json else render(summary))
    return summary.exit_code


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
    config: Config, passes: Sequence[Pass], crew: Crew, around: Surroundings, options: Options
) -> Summary:
    """Do the work of ``passes`` and sum it up."""
    assert config.discover is not None  # noqa: S101 - ``execute`` has checked it
    progress, began_s, stop = Progress(), time.monotonic(), Stop()
    for line in (*around.warnings, plans.worst_case_line(_plan(config, passes))):
        print(line, file=sys.stderr, flush=True)
    async with (
        shown(progress, config.run.name, sys.stderr) as observer,
        open_session(
            around.out,
            Limits(usd=config.run.budget_usd, wall_s=config.run.time_limit),
            capacities={"jobs": config.run.concurrency, "sandbox": config.sandbox.max},
            observers=[observer],
            rerun={each.key for each in passes} if options.rerun else frozenset(),
        ) as session,
    ):
        await to_thread.run_sync(
            write_atomically, around.out / "config.json", config.model_dump_json(indent=2)
        )
        progress.root = session.budget.snapshot()
        session.add(*discover.jobs(config.discover, passes, crew, around, session.budget.child("discover")))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_drain_on_signal, session, stop)
            outcomes = await session.run()
            tasks.cancel_scope.cancel()
        await discover.write_products(passes, outcomes, around, session)
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
        products={each.label: discover.product(each, around) for each in passes if outcomes[each.key].usable},
        stopped=stop.why,
    )


@dataclass(slots=True)
class Stop:
    """Why the user stopped the run, "" if nobody did."""

    why: str = ""


async def _drain_on_signal(session: Session, stop: Stop) -> None:
    """Let the first Ctrl-C stop the run in good order, and the second one cut clean-up short."""
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            stop.why = f"{signal.Signals(number).name}"
            session.drain(stop.why)


def _lines(passes: Sequence[Pass], outcomes: Mapping[str, Outcome], around: Surroundings) -> list[Line]:
    lines = [
        Line(outcomes[key], f"sources of {each.instance.id}", "")
        for key, each in {each.sources: each for each in passes}.items()
        if not outcomes[key].usable
    ]
    for each in passes:
        outcome = outcomes[each.key]
        path = str(discover.rules_file(each, around)) if outcome.usable else ""
        lines.append(Line(outcome, each.title, each.model_id, discover.found(outcome), path))
    return lines


def _plan(config: Config, passes: Sequence[Pass]) -> Plan:
    assert config.discover is not None  # noqa: S101 - ``execute`` has checked it
    planned = {each.sources: PlannedJob(each.sources, (), "") for each in passes}
    planned |= {each.key: PlannedJob(each.key, (each.sources,), each.model_id) for each in passes}
    return Plan(
        tuple(planned.values()),
        discover.worst_case_usd(config.discover, passes),
        config.run.budget_usd,
    )


def main() -> None:
    """Run the command line of ``python -m codetaste.run``."""
    sys.exit(app())


if __name__ == "__main__":
    main()
