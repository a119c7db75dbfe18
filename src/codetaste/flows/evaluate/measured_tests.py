"""PASS of a prediction from the test runs of this run, and what in its test run is suspicious."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.benchmark.layout import GOLDEN
from codetaste.environment.images.runtime import RuntimeEnvironment
from codetaste.errors import PatchDoesNotApply, PatchError
from codetaste.evaluation.test_runs.baseline import Baseline, make_baseline
from codetaste.evaluation.test_runs.cheating.changes import read_changes
from codetaste.evaluation.test_runs.cheating.detect import PatchSurroundings, find_cheating
from codetaste.evaluation.test_runs.cheating.flags import CheatingKind
from codetaste.evaluation.test_runs.cheating.missing_tests import count_lost_tests
from codetaste.evaluation.test_runs.cheating.run_facts import RunFacts
from codetaste.evaluation.test_runs.gates import Side
from codetaste.evaluation.test_runs.recorded import PassResult, compare_with_baseline
from codetaste.flows.environment.result import load_scripts
from codetaste.flows.evaluate.plan import baseline_tasks
from codetaste.flows.evaluate.stored_runs import load_run
from codetaste.source.patch.apply import applied_patch
from codetaste.source.patch.diff import diff_trees
from codetaste.source.patch.parse import parse_patch
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.environment.scripts import EnvironmentScripts
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag
    from codetaste.evaluation.test_runs.test_run import TestRun
    from codetaste.flows.evaluate.context import EvaluationInputs
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.source.checkout import Trees
    from codetaste.source.tree.overlay import OverlayTree


@dataclass(frozen=True, slots=True)
class MeasuredTests:
    """The test run of a prediction, the baseline, PASS, and the scripts; None where there are none.

    ``is_golden`` says that the prediction is the golden patch.
    """

    run: TestRun
    baseline: Baseline
    result: PassResult
    scripts: EnvironmentScripts | None = None
    is_golden: bool = False


async def measured_tests(task: EvaluationTask, inputs: EvaluationInputs) -> MeasuredTests:
    """Return the results of the test runs that ``task`` needs.

    Raises:
        JournalError: a text is missing or damaged.
    """
    run = await load_run(inputs.values[task.tests_key], inputs.load_text)
    runs: dict[Side, list[TestRun]] = {side: [] for side in Side}
    for each in baseline_tasks(task.instance, task.baseline_runs):
        runs[each.side].append(await load_run(inputs.values[each.key], inputs.load_text))
    baseline = make_baseline(runs)
    scripts, is_golden = await _scripts(task, inputs), task.agent_id == GOLDEN
    return MeasuredTests(run, baseline, _pass_result(run, baseline), scripts, is_golden)


def _pass_result(run: TestRun, baseline: Baseline) -> PassResult:
    counts, recorded = run.scored_counts, baseline.as_recorded()
    if counts is None:
        return PassResult(None, recorded, None, run.message)
    if baseline.problem:
        return PassResult(counts, recorded, None, baseline.problem)
    return compare_with_baseline(counts, recorded)


async def _scripts(task: EvaluationTask, inputs: EvaluationInputs) -> EnvironmentScripts | None:
    value = inputs.values[task.image_key]
    if value is None:
        return None
    return await load_scripts(RuntimeEnvironment.from_json(value).scripts, inputs.load_text)


async def with_test_run(
    evaluation: Evaluation, measured: MeasuredTests, patch: bytes, trees: Trees, scratch: Path
) -> Evaluation:
    """Return ``evaluation`` with the test run that PASS was measured with, and what is suspicious about it.

    Raises:
        SourceError: R cannot be read.
        StorageFull: no space left.
    """
    flags = await find_test_flags(measured, patch, trees, scratch)
    return replace(evaluation, test_run=measured.run, test_flags=flags)


async def find_test_flags(
    measured: MeasuredTests, patch: bytes, trees: Trees, scratch: Path
) -> tuple[CheatingFlag, ...]:
    """Return the signs of cheating in a patch and its run; none where it does not apply.

    Raises:
        SourceError: R cannot be read.
        StorageFull: no space left.
    """
    if not patch.strip() or measured.scripts is None:
        return ()
    try:
        async with applied_patch(trees.base, patch, scratch) as applied:
            flags = await to_thread.run_sync(_find_flags, measured, patch, applied.tree)
            if any(flag.kind is CheatingKind.DELETED_TESTS for flag in flags) and not measured.is_golden:
                lost = await _lost_by_golden(trees, scratch)
                flags = await to_thread.run_sync(_find_flags, measured, patch, applied.tree, lost)
    except (PatchError, PatchDoesNotApply):
        return ()  # the evaluation says so
    return flags


async def _lost_by_golden(trees: Trees, scratch: Path) -> int:
    """Return how many tests the golden patch loses."""
    golden = await diff_trees(trees.base, trees.golden, scratch)
    async with applied_patch(trees.base, golden, scratch) as applied:
        changes = await to_thread.run_sync(read_changes, parse_patch(golden), applied.tree)
        return await to_thread.run_sync(count_lost_tests, changes)


def _find_flags(
    measured: MeasuredTests, patch: bytes, tree: OverlayTree, lost_by_golden: int = 0
) -> tuple[CheatingFlag, ...]:
    scripts = measured.scripts.files if measured.scripts is not None else {}
    surroundings = PatchSurroundings(
        {name: file.content.decode("utf-8", "replace") for name, file in scripts.items()},
        frozenset(os.fsdecode(path) for path, _ in walk_tree(os.fsencode(tree.base))),
        lost_by_golden=lost_by_golden,
    )
    baseline = [_facts(run) for runs in measured.baseline.runs.values() for run in runs]
    changes = read_changes(parse_patch(patch), tree)
    return find_cheating(changes, surroundings, baseline, _facts(measured.run))


def _facts(run: TestRun) -> RunFacts:
    return RunFacts(
        counts=run.counts,
        exit_code=run.exit_code,
        cases=run.cases or None,
        contradictions=run.contradictions,
        report_contradictions=run.report_contradictions,
        left_processes=run.left_processes,
    )
