"""``codetaste run config.toml`` (also ``python -m codetaste.run``): plan and execute a run."""

from __future__ import annotations

if __name__ == "__main__":
    from codetaste.early import leave_quietly

    leave_quietly()

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import App, Parameter

from codetaste.assembly import assemble
from codetaste.command import error_json, guarded, launch, say, tell
from codetaste.config import read_config
from codetaste.errors import Cause, ConfigError
from codetaste.flows.agenda import Sections, agenda
from codetaste.limits import LiveLimits
from codetaste.report import plans
from codetaste.report.plans import Plan, PlannedJob, PlannedTrial
from codetaste.stopping import Stop, like_ctrl_c, listen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.assembly import Assembly
    from codetaste.config import Config
    from codetaste.flows.agenda import Agenda
    from codetaste.llm.pricing import PriceEntry

_STOPPED = 130

app = App(name="codetaste.run", help="Run the flows of a config file.", version_flags=[])


@dataclass(frozen=True, slots=True)
class Options:
    """Command-line options of a run. ``only`` are globs on job keys."""

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
    """Run the flows of a config file, continuing where an earlier run of the same name ended.

    Args:
        config: The TOML file.
        set_: Override a value of the file: ``--set run.budget_usd=5``. May be given several times.
        only: Run only jobs whose key matches this glob, and the jobs that they need.
        dry_run: Show the jobs, their needs and their maximum cost; run nothing.
        rerun: Repeat finished jobs (those of ``--only``, if given). Their earlier cost stays charged;
            interrupted jobs continue.
        json_: Print the result as JSON on standard output.

    Returns:
        The exit code: 0 if every job has a result, 1 if one has none, 2 for bad input or a missing tool,
        130 if the run was stopped.
    """
    options = Options(only, dry_run, rerun, json_)

    def plan_and_run() -> int:
        with like_ctrl_c():
            planned = prepare(config, set_, options.only)
        if options.dry_run:  # needs no event loop
            say(plans.render(planned.plan, as_json=options.json))
            return 0
        return anyio.run(execute, planned, options)

    return guarded(plan_and_run, as_json=json_)


@dataclass(frozen=True, slots=True)
class Planned:
    """A config with everything it names resolved, and its planned work; nothing is started yet."""

    assembly: Assembly
    live: LiveLimits
    agenda: Agenda
    plan: Plan


def prepare(path: Path, settings: Sequence[str] = (), only: Sequence[str] = ()) -> Planned:
    """Read the config at ``path`` and plan its work.

    Raises:
        ConfigError: the input is invalid; all problems are reported together.
    """
    base = read_config(path, settings)
    live = LiveLimits.of(base, base.run.out / base.run.name)
    config = live.config
    for line in live.told:
        tell(line)
    try:
        assembly = assemble(config, path.parent)
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from error
    sections = Sections(config.discover, config.agents, config.tracks, config.evaluate)
    wanted = agenda(sections, assembly.instances, config.labels(), only)
    if not wanted.chosen:
        raise ConfigError(
            f"{path}: nothing to do: it has no section of a flow: [discover], [[tracks]] or [evaluate]"
        )
    wanted.check_descriptions(assembly.benchmark)
    return Planned(assembly, live, wanted, _make_dry_run(config, wanted, assembly.prices()))


async def execute(planned: Planned, options: Options) -> int:
    """Execute the plan and print its summary; see ``run`` for the exit code.

    Raises:
        ConfigError: a model cannot be created.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    from codetaste.report.summary import as_json, render  # noqa: PLC0415 - not for a dry run
    from codetaste.work import carry_out  # noqa: PLC0415

    stop, summary = Stop(), None
    async with anyio.create_task_group() as tasks:
        stop.scope = tasks.cancel_scope
        await tasks.start(listen, stop)
        summary = await carry_out(
            planned.assembly, planned.live, planned.agenda, planned.plan, rerun=options.rerun, stop=stop
        )
        tasks.cancel_scope.cancel()
    if summary is not None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        say(json.dumps(as_json(summary), indent=2) if options.json else render(summary, width))
        return summary.exit_code
    if options.json:
        say(error_json(Cause.CANCELLED, [f"stopped before the work began: {stop.why}"], _STOPPED))
    return _STOPPED


def _make_dry_run(config: Config, wanted: Agenda, prices: Mapping[str, PriceEntry]) -> Plan:
    planned: dict[str, PlannedJob] = {}
    for each in wanted.passes:
        planned.setdefault(each.sources, PlannedJob(each.sources, (), ""))
        planned[each.key] = PlannedJob(each.key, (each.sources,), each.model_id)
    for step in wanted.steps:
        own = {before.key for before in step.before}
        for need in step.needs:
            if need not in own:
                planned.setdefault(need, PlannedJob(need, (), ""))
        planned[step.key] = PlannedJob(step.key, step.needs, step.model_id)
    for scoring in wanted.scorings:
        planned.setdefault(scoring.sources, PlannedJob(scoring.sources, (), ""))
        planned[scoring.key] = PlannedJob(scoring.key, scoring.needs, "")
    return Plan(
        tuple(planned.values()),
        wanted.worst_case_usd(config.discover),
        config.run.budget_usd,
        prices,
        tuple(
            PlannedTrial(trial.key, trial.agent.budget_usd, trial.agent.time_limit) for trial in wanted.trials
        ),
    )


def main() -> None:
    """Run the command line of ``python -m codetaste.run``."""
    launch(app)


if __name__ == "__main__":
    main()
