"""Run a config with ``[swe_refactor.build]``, and print what came of it."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.benchmark import Benchmark
from codetaste.console.exit_codes import STOPPED, error_to_json
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result, result_stream, width_of
from codetaste.core.files import remove_tree, write_atomically
from codetaste.core.paths import cache_dir
from codetaste.core.text import plural
from codetaste.errors import Cause, ConfigError, SandboxError
from codetaste.java.jdt.service import open_jdt
from codetaste.llm.prompts import Prompts
from codetaste.mining.clones.clone import open_clone
from codetaste.orchestration.budget.cost import NamedLimits
from codetaste.refactorings.service import refactoring_service
from codetaste.report.dry_run import DryRun, PlannedJob
from codetaste.report.render.csv import render_csv
from codetaste.report.render.text import render_text
from codetaste.run.execute import open_run, run_jobs
from codetaste.run.flow_plan import FlowPlan
from codetaste.run.limits import load_limits
from codetaste.run.plan import RunPlan
from codetaste.run.resolve import ResolvedConfig
from codetaste.run.services import cpu_count
from codetaste.run.signals import StopRequest, until_stopped
from codetaste.sandbox.provider import open_sandboxes
from codetaste.source.repository import Repository
from codetaste.swe_refactor.build.commits import list_commits
from codetaste.swe_refactor.build.context import BuildContext, Project
from codetaste.swe_refactor.build.finish import Construction, finish_construction
from codetaste.swe_refactor.build.jobs import add_construction
from codetaste.swe_refactor.build.outcomes import (
    NOT_DONE,
    OUTCOMES_FILE,
    outcome_table,
    outcomes_to_json,
    rows_table,
)
from codetaste.swe_refactor.dataset.format import read_instances, write_instances
from codetaste.swe_refactor.dataset.layout import FOLDER, INSTANCES_FILE
from codetaste.swe_refactor.java_image import java_sandbox
from codetaste.swe_refactor.report.projects import project_table
from codetaste.swe_refactor.verify.open import check_build_tool, open_verification

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.run.config import Config
    from codetaste.run.limits import RuntimeLimits
    from codetaste.run.plan import RunOptions
    from codetaste.run.results import RunContext
    from codetaste.swe_refactor.config import BuildConfig
    from codetaste.swe_refactor.verify.settings import VerifyContext


def plan_construction(limits: RuntimeLimits, path: Path) -> RunPlan:
    """Plan the construction of a config that was read from ``path``. Reads and starts nothing else.

    Raises:
        ConfigError: a clone is no folder.
    """
    config, section = limits.config, _section(limits.config)
    if missing := [each for each in section.repositories if not (path.parent / each.expanduser()).is_dir()]:
        raise ConfigError(
            *(f"{path}: swe_refactor.build.repositories: {each}: no such folder" for each in missing)
        )
    benchmark = Benchmark(limits.directory, ())
    resolved = ResolvedConfig(config, path.parent, benchmark, (), (), Prompts())
    jobs = tuple(PlannedJob(f"detect/{each.name}/*", (), "", "projects") for each in section.repositories)
    dry_run = DryRun(jobs, None, config.run.budget_usd, {})
    return RunPlan(resolved, limits, FlowPlan(), dry_run)


def _section(config: Config) -> BuildConfig:
    assert config.swe_refactor is not None and config.swe_refactor.build is not None  # noqa: S101, PT018
    return config.swe_refactor.build


async def construct_and_report(base: Config, path: Path, options: RunOptions) -> int:
    """Run the config that was read from ``path``; print the outcomes, and the instances of each project.

    Returns:
        The exit code: 0, 1 if there is no instance or a job failed, 130 if the run was stopped.

    Raises:
        ConfigError: a clone or its history cannot be used.
        ToolMissing: a JDK, the jars or git are not installed.
        JournalError: the run directory is in use, damaged, or full.
    """
    stop = StopRequest()
    planned = plan_construction(load_limits(base, path), path)
    made = await until_stopped(stop, lambda: construct(planned, options, stop))
    if made is None:
        if options.as_json:
            message = f"stopped before the work began: {stop.reason}"
            print_result(error_to_json(Cause.CANCELLED, [message], STOPPED))
        return STOPPED
    folder = planned.limits.directory / FOLDER
    if not await to_thread.run_sync(partial(_write, made, folder, stopped=bool(stop.reason))):
        notify(f"stopped before all earlier results were read: the files in {folder} stay as they were")
    if options.as_json:
        print_result(json_document(_to_json(made, folder)))
    else:
        width = width_of(result_stream())
        print_result(render_text(outcome_table(made.outcomes), width))
        print_result(render_text(project_table(made.projects), width))
        print_result(f"{plural(len(made.instances), 'instance')} in {folder / INSTANCES_FILE}")
    if stop.reason:
        return STOPPED
    complete = all(each.outcome != NOT_DONE for each in made.outcomes)
    return 0 if made.instances and (complete or options.exit_zero) else 1


async def construct(planned: RunPlan, options: RunOptions, stop: StopRequest) -> Construction:
    """Run the construction, or continue it, and return what came out so far.

    Raises:
        ConfigError: a clone or its history cannot be used.
        ToolMissing: a JDK, the jars or git are not installed.
        JournalError: the run directory is in use, damaged, or full.
    """
    config = _section(planned.limits.config)
    projects = await _open_projects(config, planned.resolved.base_dir)
    cache = await to_thread.run_sync(cache_dir, notify)
    async with AsyncExitStack() as stack:
        miner = await stack.enter_async_context(refactoring_service(config.refactoring_miner, cache))
        jdt = await stack.enter_async_context(
            open_jdt(cache, size=cpu_count(), heap_bytes=config.jdt_memory, timeout_s=config.jdt_time_limit)
        )
        context = await open_run(stack, planned, options)
        verification = await _open_verification(stack, planned, context, projects, cache)
        building = BuildContext(
            config,
            projects,
            miner,
            jdt,
            verification.contexts,
            verification.missing,
            await _empty_scratch(context.out / FOLDER / "scratch"),
            planned.limits.config.sandbox.memory,
        )
        add_construction(context.session, building, (NamedLimits("build"),))
        outcomes = await run_jobs(context, planned, stop)
        return await finish_construction(building, outcomes, context.session.record.blobs.load)


async def _empty_scratch(folder: Path) -> Path:
    """Return a folder for this process alone, without what a killed one has left there."""
    await to_thread.run_sync(remove_tree, folder)
    await to_thread.run_sync(lambda: folder.mkdir(parents=True))
    return folder


async def _open_projects(config: BuildConfig, base_dir: Path) -> dict[str, Project]:
    """Open the clones, and list their commits.

    Raises:
        ConfigError: two clones are of one repository, or a history cannot be read.
        SourceError: a path is no clone.
    """
    projects: dict[str, Project] = {}
    for each in config.repositories:
        clone = await open_clone(base_dir / each.expanduser())
        if clone.repository in projects:
            raise ConfigError(
                f"swe_refactor.build.repositories: {each}: a second clone of {clone.repository}"
            )
        commits = await list_commits(clone, config.commits, config.newest)
        repository = Repository(clone.git_dir, clone.label)
        projects[clone.repository] = Project(clone, repository, tuple(commits))
    return projects


@dataclass(frozen=True, slots=True)
class _Verification:
    """What verifies the candidates of each project; ``missing`` says why there is nothing."""

    contexts: Mapping[str, VerifyContext]
    missing: str = ""


async def _open_verification(
    stack: AsyncExitStack, planned: RunPlan, context: RunContext, projects: Mapping[str, Project], cache: Path
) -> _Verification:
    """Open the sandboxes of step 4; without any that works the construction ends with step 3."""
    config, section = planned.limits.config, _section(planned.limits.config)
    if not section.verify:
        return _Verification({}, "swe_refactor.build.verify is false")
    sandbox = java_sandbox(config.sandbox, section)
    out = await to_thread.run_sync(context.out.absolute)
    try:
        opening = open_sandboxes(sandbox, out, out.name, notify)
        sandboxes = await stack.enter_async_context(opening)
        check_build_tool(sandboxes)
    except SandboxError as error:
        context.session.note(f"candidates are not verified: {error}")
        return _Verification({}, f"not verified: {error}")
    contexts = {
        name: await open_verification(sandboxes, sandbox, section, out / FOLDER / "verify" / name, cache)
        for name in projects
    }
    return _Verification(contexts)


def _write(made: Construction, folder: Path, *, stopped: bool) -> bool:
    """Write all files, and return True; a session that was stopped leaves those with more instances."""
    if stopped and len(made.instances) < _count_instances(folder / INSTANCES_FILE):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    write_instances(folder / INSTANCES_FILE, made.instances)
    write_atomically(folder / OUTCOMES_FILE, outcomes_to_json(made.outcomes))
    tables = {"outcomes": outcome_table(made.outcomes), "candidates": rows_table(made.outcomes)}
    tables["projects"] = project_table(made.projects)
    for name, table in tables.items():
        write_atomically(folder / f"{name}.csv", render_csv([table]))
    return True


def _count_instances(file: Path) -> int:
    try:
        return len(read_instances(file))
    except ConfigError:
        return 0


def _to_json(made: Construction, folder: Path) -> dict[str, Any]:
    counted = [
        {"step": row.cells[0], "outcome": row.cells[1], "number": row.cells[2]}
        for row in outcome_table(made.outcomes).rows
    ]
    return {
        "directory": str(folder.parent),
        "file": str(folder / INSTANCES_FILE),
        "instances": [each.unique_id for each in made.instances],
        "outcomes": counted,
        "candidates": [asdict(each) for each in made.outcomes],
    }
