"""PASS of a prediction from the test runs of this run, and what in its test run is suspicious."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.evaluation.test_results import PassResult, compare_with_baseline
from codetaste.evaluation.test_runs.baseline import Baseline, make_baseline
from codetaste.evaluation.test_runs.gates import Side
from codetaste.flows.evaluate.plan import baseline_tasks
from codetaste.flows.evaluate.stored_runs import load_run

if TYPE_CHECKING:
    from codetaste.evaluation.evaluate import Evaluation
    from codetaste.evaluation.test_runs.test_run import TestRun
    from codetaste.flows.evaluate.context import EvaluationInputs
    from codetaste.flows.evaluate.plan import EvaluationTask


@dataclass(frozen=True, slots=True)
class MeasuredTests:
    """The test run of a prediction, the baseline, and PASS."""

    run: TestRun
    baseline: Baseline
    result: PassResult


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
    counts = run.scored_counts
    if counts is None:
        return MeasuredTests(run, baseline, PassResult(None, baseline.as_recorded(), None, run.message))
    result = compare_with_baseline(counts, baseline.as_recorded())
    if baseline.problem:
        result = PassResult(counts, baseline.as_recorded(), None, baseline.problem)
    return MeasuredTests(run, baseline, result)


def with_test_run(evaluation: Evaluation, measured: MeasuredTests) -> Evaluation:
    """Return ``evaluation`` with the test run that PASS was measured with."""
    notes = tuple(measured.run.contradictions)
    return replace(evaluation, test_run=measured.run, notes=(*evaluation.notes, *notes))
