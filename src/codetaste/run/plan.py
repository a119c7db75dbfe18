"""Plan a run: read its config, select its work, and find what earlier sessions did of it. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path  # noqa: TC003 - cyclopts reads the annotations
from typing import TYPE_CHECKING

from codetaste.console.streams import notify
from codetaste.errors import ConfigError
from codetaste.flows.describe.context import DESCRIPTIONS_FOLDER
from codetaste.flows.describe.plan import existing_descriptions
from codetaste.orchestration.journal.journal import JOURNAL_FILE, check_format
from codetaste.report.dry_run import DryRun, PlannedJob, PlannedTrial, describe_repeats
from codetaste.run.config import read_config, runs_folder
from codetaste.run.flow_plan import plan_flows
from codetaste.run.limits import RuntimeLimits
from codetaste.run.resolve import resolve_config

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.run.config import Config
    from codetaste.run.earlier_work import EarlierSessions
    from codetaste.run.flow_plan import FlowPlan
    from codetaste.run.resolve import ResolvedConfig


@dataclass(frozen=True, slots=True)
class RunPlan:
    """A config with everything it names resolved, and its planned work; nothing is started yet.

    ``earlier`` is what earlier sessions did, None if there was none.
    """

    resolved: ResolvedConfig
    limits: RuntimeLimits
    flows: FlowPlan
    dry_run: DryRun
    earlier: EarlierSessions | None = None

    @property
    def repeats(self) -> str:
        """What would be bought again and why, in one line; "" if nothing would be."""
        return describe_repeats(self.dry_run)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a plan is executed.

    Attributes:
        rerun: repeat the selected jobs.
        rerun_failed: repeat those of the selected jobs that have a result, but ended by a fault or a mistake.
        yes: finished jobs may be done again where what decides their results has changed.
        exit_zero: exit with 0 if every job has a result, also where some did not end well.
        as_json: print the result as JSON.
    """

    rerun: bool = False
    rerun_failed: bool = False
    yes: bool = False
    exit_zero: bool = False
    as_json: bool = False


def plan_run(path: Path, settings: Sequence[str] = (), only: Sequence[str] = ()) -> RunPlan:
    """Read the config at ``path`` and plan its work.

    Raises:
        ConfigError: the input is invalid; all problems are reported together.
        JournalError: another version of codetaste made the run.
    """
    return plan_config(read_config(path, settings), path, only)


def plan_config(base: Config, path: Path, only: Sequence[str] = ()) -> RunPlan:
    """Plan the work of a config whose paths are relative to the folder of the file ``path``.

    Raises:
        ConfigError: what the config names does not exist; all problems are reported together.
        JournalError: another version of codetaste made the run.
    """
    directory = runs_folder(path, base.run.out) / base.run.name
    journal = directory / JOURNAL_FILE
    if journal.is_file():
        check_format(journal)
    limits = RuntimeLimits.load(base, directory)
    config = limits.config
    for line in limits.messages:
        notify(line)
    resolved, flows = resolve_and_select(path, config, only)
    dry_run, earlier = _make_dry_run(config, flows, resolved), None
    if journal.is_file() and journal.stat().st_size:
        from codetaste.run.earlier_work import read_earlier_sessions  # noqa: PLC0415 - not for a new run

        earlier = read_earlier_sessions(journal, resolved, flows)
        dry_run = replace(dry_run.with_work(earlier.work), run=directory)
    dry_run = replace(dry_run, notes=(*dry_run.notes, *resolved.release_notes()))
    return RunPlan(resolved, limits, flows, dry_run, earlier)


def resolve_and_select(
    path: Path, config: Config, only: Sequence[str] = ()
) -> tuple[ResolvedConfig, FlowPlan]:
    """Find all that ``config``, which was read from ``path``, names, and select its work.

    Raises:
        ConfigError: one line for each name that does not exist, or there is nothing to do.
    """
    try:
        resolved = resolve_config(config, path.parent)
    except ConfigError as error:
        raise ConfigError(*(f"{path}: {problem}" for problem in error.problems)) from error
    folder = runs_folder(path, config.run.out) / config.run.name / DESCRIPTIONS_FOLDER
    existing = existing_descriptions(resolved.benchmark, folder)
    flows = plan_flows(
        config,
        resolved.instances,
        only,
        existing=existing,
        strategy_trials=resolved.trials,
        studies=resolved.studies,
    )
    if not flows.selected_keys and config.describe is not None:
        raise ConfigError(
            f"{path}: nothing to do: all descriptions are there; with describe.all = true those that no one "
            "has reviewed are made anew"
        )
    if not flows.selected_keys:
        raise ConfigError(
            f"{path}: nothing to do: it has no section of a flow: [describe], [discover], [environment], "
            "[[tracks]], [evaluate] or [case_study]"
        )
    flows.check_descriptions(existing)
    benchmark = existing.benchmark.with_descriptions({}, pending=flows.described)
    return replace(resolved, benchmark=benchmark), flows


def _make_dry_run(config: Config, flows: FlowPlan, resolved: ResolvedConfig) -> DryRun:
    jobs = (
        *(PlannedJob(each.key, each.needs, each.model_id, each.group) for each in flows.descriptions),
        *(PlannedJob(each.key, each.needs, each.model_id, each.group) for each in flows.passes),
        *(
            PlannedJob(each.key, each.needs, each.model_id, "environments")
            for each in flows.environments
            if each.proves
        ),
        *(PlannedJob(step.key, step.needs, step.model_id, step.group) for step in flows.steps),
        *(PlannedJob(task.key, task.needs, "", task.group) for task in flows.evaluations),
        *(
            PlannedJob(task.refactorings_key, task.refactoring_needs, "", "refactorings")
            for task in flows.refactored
        ),
        *(
            PlannedJob(each.answer_key, (each.base_key,), each.model_id, f"answers of {each.group}")
            for each in flows.strategy_trials
        ),
        *(
            PlannedJob(each.score_key, (each.answer_key,), "", f"scores of {each.group}")
            for each in flows.strategy_trials
            if each.score_key in flows.selected_keys
        ),
        *(PlannedJob(each.key, each.needs, each.agent.model, each.group) for each in flows.studies),
    )
    planned: dict[str, PlannedJob] = {}
    for job in jobs:
        for need in job.needs:
            planned.setdefault(need, PlannedJob(need, (), ""))
        planned[job.key] = job
    return DryRun(
        tuple(planned.values()),
        flows.worst_case_usd(config),
        config.run.budget_usd,
        resolved.prices(),
        tuple(PlannedTrial(trial.key, *trial.worst_case) for trial in flows.trials),
        notes=resolved.model_notes(),
    )
