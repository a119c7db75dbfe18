"""``codetaste run config.toml`` (also ``python -m codetaste.run``): plan and execute a run."""

from __future__ import annotations

if __name__ == "__main__":
    from codetaste.core.early_interrupt import exit_on_sigint

    exit_on_sigint()

import sys
from dataclasses import replace
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING, Annotated

import anyio
from cyclopts import App, Parameter

from codetaste.console.command import format_default, launch, run_command
from codetaste.console.streams import notify, print_result, result_stream, width_of
from codetaste.errors import ConfigError
from codetaste.report.dry_run import render_dry_run
from codetaste.run.config import read_config
from codetaste.run.plan import RunOptions, plan_run
from codetaste.run.signals import signals_raise_keyboard_interrupt

if TYPE_CHECKING:
    from codetaste.run.plan import RunPlan

app = App(
    name="codetaste.run",
    help="Run the flows of a config file.",
    version_flags=[],
    default_parameter=Parameter(show_default=format_default),
)


@app.default
def run(  # noqa: PLR0913 - the options of the command line
    config: Path,
    /,
    *,
    set_: Annotated[tuple[str, ...], Parameter(name="--set", negative=())] = (),
    only: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    dry_run: Annotated[bool, Parameter(negative=())] = False,
    rerun: Annotated[bool, Parameter(negative=())] = False,
    rerun_failed: Annotated[bool, Parameter(negative=())] = False,
    yes: Annotated[bool, Parameter(negative=())] = False,
    exit_zero: Annotated[bool, Parameter(negative=())] = False,
    json_: Annotated[bool, Parameter(name="--json", negative=())] = False,
) -> int:
    """Run the flows of a config file, continuing where an earlier run of the same name ended.

    Args:
        config: The TOML file.
        set_: Override a value of the file: ``--set run.budget_usd=5``. May be given several times.
        only: Run only jobs whose key matches this glob, and the jobs that they need.
        dry_run: Show what is done, what would be done (again, and why), and the maximum cost; run nothing.
        rerun: Repeat finished jobs (those of ``--only``, if given). Their earlier cost stays charged;
            interrupted jobs continue.
        rerun_failed: Repeat those of the selected jobs that have a result, but ended by a fault or a mistake;
            jobs without a result and interrupted ones run anyway.
        yes: Do finished jobs again where what decides their results has changed, without asking.
        exit_zero: Exit with 0 if every job has a result, also where some did not end well.
        json_: Print the result as JSON on standard output.

    Returns:
        The exit code: 0 if every job ended well, 1 if one did not, 2 for bad input or a missing tool, 130 if
        the run was stopped.
    """

    def plan_and_run() -> int:
        with signals_raise_keyboard_interrupt():
            base = read_config(config, set_)
            if not base.makes_benchmark:
                planned = plan_run(config, set_, only)
            else:
                from codetaste.run.mined import dispatch  # noqa: PLC0415 - not for other runs

                options = RunOptions(rerun, rerun_failed, yes, exit_zero, json_)
                dispatch.check_options(base, only, options)
                if not dry_run:
                    return dispatch.run_without_benchmark(base, config, options)
                planned = dispatch.plan_without_benchmark(base, config)
        return carry_out(planned, RunOptions(rerun, rerun_failed, yes, exit_zero, json_), dry_run=dry_run)

    return run_command(plan_and_run, as_json=json_)


def carry_out(planned: RunPlan, options: RunOptions, *, dry_run: bool) -> int:
    """Execute a plan, or only show what it would do; return the exit code.

    Raises:
        ConfigError: finished jobs would be bought again, and the user does not want that.
    """
    if dry_run:  # needs no event loop
        print_result(render_dry_run(planned.dry_run, width_of(result_stream()), as_json=options.as_json))
        return 0
    if not options.rerun and not options.yes:
        ask_before_repeats(planned)
    from codetaste.run.execute import run_and_report  # noqa: PLC0415 - not for a dry run

    return anyio.run(run_and_report, planned, replace(options, yes=options.yes or bool(planned.repeats)))


def ask_before_repeats(planned: RunPlan) -> None:
    """Ask on a terminal whether finished jobs may be bought again; nothing is asked if none would be.

    Raises:
        ConfigError: the answer is no, or there is no terminal to ask on.
    """
    if not planned.repeats:
        return
    where = f"{planned.limits.directory}: {planned.repeats}"
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ConfigError(f"{where}; pass --yes to do so, or give the run another name")
    notify(where)
    sys.stderr.write("Do them again? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise ConfigError("nothing was done; give the run another name to have both results")


def main() -> None:
    """Run the command line of ``python -m codetaste.run``."""
    launch(app)


if __name__ == "__main__":
    main()
