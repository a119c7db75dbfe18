"""``codetaste run config.toml`` (also ``python -m codetaste.run``): plan and execute a run."""

from __future__ import annotations

if __name__ == "__main__":
    from codetaste.early import exit_on_sigint

    exit_on_sigint()

import json
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import App, Parameter

from codetaste.assembly import resolve_config
from codetaste.command import error_to_json, launch, notify, print_result, run_command
from codetaste.config import read_config
from codetaste.errors import Cause, ConfigError
from codetaste.flows.agenda import FlowSections, plan_flows
from codetaste.limits import RuntimeLimits
from codetaste.report import plans
from codetaste.report.plans import DryRun, PlannedJob, PlannedTrial
from codetaste.stopping import StopRequest, listen_for_signals, signals_raise_keyboard_interrupt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.assembly import ResolvedConfig
    from codetaste.config import Config
    from codetaste.flows.agenda import FlowPlan
    from codetaste.llm.pricing import PriceEntry

_STOPPED = 130

app = App(name="codetaste.run", help="Run the flows of a config file.", version_flags=[])


@dataclass(frozen=True, slots=True)
class RunOptions:
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
    options = RunOptions(only, dry_run, rerun, json_)

    def plan_and_run() -> int:
        with signals_raise_keyboard_interrupt():
            planned = plan_run(config, set_, options.only)
        if options.dry_run:  # needs no event loop
            print_result(plans.render_dry_run(planned.dry_run, as_json=options.json))
            return 0
        return anyio.run(run_and_report, planned, options)

    return run_command(plan_and_run, as_json=json_)


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A config with everything it names resolved, and its planned work; nothing is started yet."""

    resolved: ResolvedConfig
    limits: RuntimeLimits
    agenda: FlowPlan
    dry_run: DryRun


def plan_run(path: Path, settings: Sequence[str] = (), only: Sequence[str] = ()) -> RunPlan:
    """Read the config at ``path`` and plan its work.

    Raises:
        ConfigError: the input is invalid; all problems are reported together.
    """
    base = read_config(path, settings)
    live = RuntimeLimits.load(base, base.run.out / base.run.name)
    config = live.config
    for line in live.messages:
        notify(line)
    try:
        assembly = resolve_config(config, path.parent)
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from error
    sections = FlowSections(config.discover, config.agents, config.tracks, config.evaluate)
    wanted = plan_flows(sections, assembly.instances, config.labels(), only)
    if not wanted.selected_keys:
        raise ConfigError(
            f"{path}: nothing to do: it has no section of a flow: [discover], [[tracks]] or [evaluate]"
        )
    wanted.check_descriptions(assembly.benchmark)
    return RunPlan(assembly, live, wanted, _make_dry_run(config, wanted, assembly.prices()))


async def run_and_report(planned: RunPlan, options: RunOptions) -> int:
    """Execute the plan and print its summary; see ``run`` for the exit code.

    Raises:
        ConfigError: a model cannot be created.
        ToolMissing: commands cannot be contained on this machine, or there is no rule engine.
        JournalError: the run directory is in use, damaged, or full.
    """
    from codetaste.report.summary import render_summary, summary_to_json  # noqa: PLC0415 - not for a dry run
    from codetaste.work import execute_run  # noqa: PLC0415

    stop, summary = StopRequest(), None
    async with anyio.create_task_group() as tasks:
        stop.scope = tasks.cancel_scope
        await tasks.start(listen_for_signals, stop)
        summary = await execute_run(
            planned.resolved, planned.limits, planned.agenda, planned.dry_run, rerun=options.rerun, stop=stop
        )
        tasks.cancel_scope.cancel()
    if summary is not None:
        width = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print_result(
            json.dumps(summary_to_json(summary), indent=2) if options.json else render_summary(summary, width)
        )
        return summary.exit_code
    if options.json:
        print_result(error_to_json(Cause.CANCELLED, [f"stopped before the work began: {stop.why}"], _STOPPED))
    return _STOPPED


def _make_dry_run(config: Config, wanted: FlowPlan, prices: Mapping[str, PriceEntry]) -> DryRun:
    planned: dict[str, PlannedJob] = {}
    for each in wanted.passes:
        planned.setdefault(each.sources_key, PlannedJob(each.sources_key, (), ""))
        planned[each.key] = PlannedJob(each.key, (each.sources_key,), each.model_id)
    for step in wanted.steps:
        own = {before.key for before in step.previous_steps}
        for need in step.needs:
            if need not in own:
                planned.setdefault(need, PlannedJob(need, (), ""))
        planned[step.key] = PlannedJob(step.key, step.needs, step.model_id)
    for scoring in wanted.evaluations:
        planned.setdefault(scoring.sources_key, PlannedJob(scoring.sources_key, (), ""))
        planned[scoring.key] = PlannedJob(scoring.key, scoring.needs, "")
    return DryRun(
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
