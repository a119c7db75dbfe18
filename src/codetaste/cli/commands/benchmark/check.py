"""``codetaste benchmark check``: check that golden scores 1 and null 0 on each instance."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from anyio import to_thread
from cyclopts import Parameter

from codetaste.cli.arguments import open_scan, resolve_benchmark
from codetaste.cli.container_runs import (
    DEFAULT_BASELINE_RUNS,
    DEFAULT_CONTAINERS,
    BaselineRuns,
    ContainerOptions,
    InstanceSelection,
    run_tests,
)
from codetaste.cli.options import AsJson, Flag, OptionalPath, Several
from codetaste.console.command import command
from codetaste.console.exit_codes import STOPPED
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.core.text import plural
from codetaste.evaluation.pseudo_agents import PSEUDO_AGENTS
from codetaste.evaluation.test_runs.recorded import PassResult
from codetaste.evaluation.validation import ValidationContext, validate_instances
from codetaste.flows.evaluate.plan import EvaluationTask
from codetaste.report.validation import all_sound, render_validation, validations_to_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.validation import InstanceValidation, MeasuredPass
    from codetaste.flows.evaluate.measured_tests import MeasuredTests


@command
async def check(
    *,
    benchmark: str = "quickstart",
    repos: OptionalPath = None,
    instance: Several = (),
    tests: Flag = False,
    baseline_runs: BaselineRuns = DEFAULT_BASELINE_RUNS,
    containers: Annotated[ContainerOptions, Parameter(name="*")] = DEFAULT_CONTAINERS,
    json_: AsJson = False,
) -> int:
    """Check the instances, and print each as soon as it is checked.

    Args:
        benchmark: A folder in the published layout, or "quickstart".
        repos: A folder of clones OWNER/REPO; otherwise each instance's own origin is used.
        instance: Globs on instance ids; default all.
        tests: Run the tests of each instance on R and on R∘X* in containers, from the benchmark's scripts;
            both must pass. Otherwise recorded results are looked at.
        baseline_runs: With --tests, test runs on each of R and R∘X*; each is made once.
        containers: With --tests, where tests run.
        json_: Print the result as JSON.

    Returns:
        The exit code, 1 if an instance is not sound or none was checked.

    Raises:
        ConfigError: a folder does not exist, a glob matches nothing, or the benchmark's table is invalid.
        ToolMissing: there is no rule engine.
        SandboxMissing: tests should run, and there is no container engine or no base image.
    """
    opened = await to_thread.run_sync(resolve_benchmark, benchmark, repos)
    instances = opened.select(instance)
    measured: MeasuredPass | None = None
    if tests:
        there = [each for each in instances if not opened.describe_missing_clone(each)]
        selection = InstanceSelection(benchmark=benchmark, repos=repos, instance=instance)
        measured = await _measure(selection, containers, there, baseline_runs)
        if measured is None:
            return STOPPED
    scan = await open_scan(opened)

    def report(checked: InstanceValidation) -> None:
        if not json_:
            print_result(render_validation(checked))

    with tempfile.TemporaryDirectory(prefix="codetaste-check-") as scratch:
        bench = ValidationContext(
            opened, scan.scanner, scan.cache, Path(scratch), scan.engine.label, measured
        )
        checked = await validate_instances(bench, instances, report)
    if json_:
        print_result(json_document({"engine": scan.engine.version, **validations_to_json(checked)}))
    else:
        print_result(_format_total(checked))
    return 0 if all_sound(checked) else 1


async def _measure(
    selection: InstanceSelection, containers: ContainerOptions, instances: Sequence[Instance], runs: int
) -> MeasuredPass | None:
    """Run the tests of both pseudo agents and the baselines; return None if a signal stopped it."""
    tasks = [EvaluationTask(each, agent, baseline_runs=runs) for each in instances for agent in PSEUDO_AGENTS]
    found = await run_tests(selection, containers, tasks)
    if found is None:
        return None
    return {(task.instance.id, task.agent_id): _pass_result(found[task.key]) for task in tasks}


def _pass_result(measured: MeasuredTests | str) -> PassResult:
    return PassResult(reason=measured) if isinstance(measured, str) else measured.result


def _format_total(checked: list[InstanceValidation]) -> str:
    not_skipped = [each for each in checked if not each.skip_reason]
    sound = sum(bool(each.valid) for each in not_skipped)
    are = f"{plural(len(not_skipped), 'instance')} {'is' if len(not_skipped) == 1 else 'are'}"
    text = f"{sound} of {are} sound; {len(checked) - len(not_skipped)} skipped"
    return text if not_skipped else f"{text}: nothing was checked"
