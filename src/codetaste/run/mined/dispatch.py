"""Configs that name no benchmark: they mine one, or build instances of SWE-Refactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from codetaste.errors import ConfigError
from codetaste.run.limits import load_limits
from codetaste.run.mined.construction import construct_and_report, plan_construction
from codetaste.run.mined.mining import plan_mining
from codetaste.run.mined.report import assemble_and_report

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.run.config import Config
    from codetaste.run.plan import RunOptions, RunPlan


def check_options(base: Config, only: Sequence[str], options: RunOptions) -> None:
    """Refuse options that such a run could only ignore: its jobs are not known before it runs.

    Raises:
        ConfigError: there is one.
    """
    if base.swe_refactor is None:
        if only:
            raise ConfigError("--only: not with [mine]; run its benchmark with another config to select jobs")
        return
    if only:
        raise ConfigError(
            "--only: not with [swe_refactor.build]; its keys repositories, commits, newest and types select"
        )
    if options.rerun or options.rerun_failed:
        name = "--rerun" if options.rerun else "--rerun-failed"
        raise ConfigError(
            f"{name}: not with [swe_refactor.build]; give the run another name to build everything again"
        )


def plan_without_benchmark(base: Config, path: Path) -> RunPlan:
    """Plan a construction, or a mining alone: what other flows do depends on what it finds."""
    plan = plan_mining if base.swe_refactor is None else plan_construction
    return plan(load_limits(base, path), path)


def run_without_benchmark(base: Config, path: Path, options: RunOptions) -> int:
    """Run the config that was read from ``path``, and print what came of it; return the exit code."""
    run = assemble_and_report if base.swe_refactor is None else construct_and_report
    return anyio.run(run, base, path, options)
