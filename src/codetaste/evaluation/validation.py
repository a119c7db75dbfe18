"""Validate instances: the human's patch must meet every rule (IFR 1), an empty patch none (IFR 0)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio
from anyio import to_thread

from codetaste.benchmark.layout import GOLDEN, NULL, Track
from codetaste.errors import ConfigError, RuleError, SourceError
from codetaste.evaluation.evaluate import Evaluation, evaluate
from codetaste.evaluation.metrics import MIN_PASS_RATE, MIN_TESTS, ifr
from codetaste.evaluation.pseudo_agents import NULL_PATCH, golden_patch
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.evaluation.test_runs.recorded import (
    compare_with_baseline,
    read_baseline,
    read_pseudo_agent_tests,
)
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.metrics import TestCounts
    from codetaste.evaluation.rule_set import RuleSet
    from codetaste.evaluation.test_runs.recorded import PassResult
    from codetaste.rules.scan.model import Scanner

MeasuredPass: TypeAlias = Mapping[tuple[str, str], "PassResult"]
"""PASS of the pseudo agents, by instance id and agent id."""
MAX_CONCURRENT = 2
_TREES = {GOLDEN: "R∘X*", NULL: "R"}
"""The trees that the pseudo agents leave."""
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class InstanceValidation:
    """Result of validating one instance; ``skip_reason`` is "" if it was checked.

    ``problems`` say what is wrong with it, ``notes`` are further remarks, a line each. ``golden`` is the
    evaluation of X*, ``null`` that of an empty patch; None if there is none.
    """

    instance: str
    skip_reason: str = ""
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    golden: Evaluation | None = None
    null: Evaluation | None = None

    @property
    def valid(self) -> bool | None:
        """Whether it has no problems; None if it was not checked."""
        return None if self.skip_reason else not self.problems


@dataclass(frozen=True, slots=True)
class ValidationContext:
    """Shared inputs: ``engine`` is the rule engine's name and version, ``scratch`` an existing folder.

    PASS is that of ``measured``; None for that of recorded test results.
    """

    benchmark: Benchmark
    scanner: Scanner
    cache: Path
    scratch: Path
    engine: str
    measured: MeasuredPass | None = None


async def validate_instances(
    bench: ValidationContext, instances: Sequence[Instance], done: Callable[[InstanceValidation], None]
) -> list[InstanceValidation]:
    """Check ``instances``, a few at a time, and return the results in their order.

    ``done`` is called with each result as soon as it is known.

    Raises:
        ExceptionGroup: with errors that concern no single instance: the rule engine could not be run at all
            (EngineError), git is not installed (ToolMissing), no space left (StorageFull).
    """
    limiter = anyio.CapacityLimiter(MAX_CONCURRENT)
    results: dict[str, InstanceValidation] = {}

    async def check(instance: Instance) -> None:
        async with limiter:
            try:
                result = await validate_instance(bench, instance)
            except (ConfigError, RuleError, SourceError) as error:
                result = InstanceValidation(instance.id, problems=tuple(str(error).splitlines()))
            results[instance.id] = result
            done(result)

    async with anyio.create_task_group() as tasks:
        for instance in instances:
            tasks.start_soon(check, instance)
    return [results[instance.id] for instance in instances]


async def validate_instance(bench: ValidationContext, instance: Instance) -> InstanceValidation:
    """Check all data of an instance, and score both pseudo agents on it.

    Raises:
        SourceError: its trees cannot be checked out.
        EngineError: the rule engine could not be run at all.
    """
    benchmark = bench.benchmark
    if lacking := benchmark.describe_missing_clone(instance):
        return InstanceValidation(instance.id, skip_reason=lacking)
    try:
        found, rules, pass_results = await to_thread.run_sync(_read_instance, bench, instance)
    except (ConfigError, RuleError) as error:
        texts = await to_thread.run_sync(lambda: tuple(_description_problems(benchmark, instance)))
        return InstanceValidation(instance.id, problems=(*texts, *str(error).splitlines()))
    trees = await checkout_trees(benchmark.origin(instance), bench.cache)
    evaluations: dict[str, Evaluation] = {}
    patches = {NULL: NULL_PATCH, GOLDEN: await golden_patch(benchmark, instance, trees, bench.scratch)}
    for agent, patch in patches.items():
        evaluations[agent] = await evaluate(
            rules,
            trees.base,
            patch,
            bench.scanner,
            scratch=bench.scratch,
            pass_result=pass_results[agent],
            engine=bench.engine,
        )
    golden, null = evaluations[GOLDEN], evaluations[NULL]
    problems = (
        *found.problems,
        *_ifr_problem(golden, "the golden patch", 1.0),
        *_ifr_problem(null, "an empty patch", 0.0),
    )
    flags = (
        f"the golden patch: rule {each.rule_id} matches only code without effect ({each.reason}: {each.path})"
        for each in golden.flagged
    )
    return InstanceValidation(instance.id, "", problems, (*found.notes, *golden.notes, *flags), golden, null)


def recorded_pass(benchmark: Benchmark, instances: Iterable[Instance]) -> MeasuredPass:
    """Return PASS of the pseudo agents by the test results that ``benchmark`` has; blocking.

    Raises:
        ConfigError: a file with results cannot be read.
    """
    return {
        (instance.id, agent): result
        for instance in instances
        for agent, result in _recorded_results(benchmark, instance).items()
    }


def _recorded_results(benchmark: Benchmark, instance: Instance) -> dict[str, PassResult]:
    baseline = read_baseline(benchmark, instance)
    tests = {agent: read_pseudo_agent_tests(benchmark, instance, agent) for agent in _TREES}
    return {agent: compare_with_baseline(counts, baseline) for agent, counts in tests.items()}


def _read_instance(
    bench: ValidationContext, instance: Instance
) -> tuple[InstanceValidation, RuleSet, dict[str, PassResult]]:
    """Return what is wrong with the benchmark's data, the rules, and PASS of each pseudo agent."""
    benchmark, rules = bench.benchmark, read_rule_set(bench.benchmark, instance)
    if bench.measured is None:
        results = _recorded_results(benchmark, instance)
    else:
        results = {agent: bench.measured[instance.id, agent] for agent in _TREES}
    baseline = results[NULL].baseline
    problems = [*_description_problems(benchmark, instance)]
    for agent, tree in _TREES.items():
        problems.extend(_test_suite_problem(results[agent].tests, tree))
        if bench.measured is not None:
            problems.extend(_pass_problem(results[agent], tree))
    directions = (("additive", rules.positive), ("reductive", rules.negative))
    notes = [f"there are no {name} rules" for name, found in directions if not found]
    if bench.measured is None and baseline.thresholds is None:
        notes.append("no test baseline is recorded: PASS is unknown")
    return InstanceValidation(instance.id, "", tuple(problems), (*notes, *baseline.notes)), rules, results


def _description_problems(benchmark: Benchmark, instance: Instance) -> Iterator[str]:
    for track in Track:
        try:
            benchmark.description(instance, track)
        except ConfigError as error:
            yield from error.problems


def _test_suite_problem(tests: TestCounts | None, tree: str) -> Iterator[str]:
    """Yield why a test suite is not valid, if it is not (CodeTaste §3.3)."""
    if tests is not None and not tests.is_valid:
        why = f" ({tests.error})" if tests.error else ""
        yield (
            f"the tests on {tree} are not valid: {tests.passed} of {tests.total} passed{why}; "
            f"at least {MIN_TESTS} tests and {MIN_PASS_RATE:.0%} passed are required"
        )


def _pass_problem(result: PassResult, tree: str) -> Iterator[str]:
    """Yield why PASS on one of the two trees is not measured, or is not met."""
    if result.passed is None:
        yield f"PASS on {tree} is unknown: {result.reason}"
    elif not result.passed and result.tests is not None:
        yield f"the tests on {tree} do not pass: {result.tests.passed} passed, {result.tests.failed} failed"


def _ifr_problem(evaluation: Evaluation, patch: str, expected: float) -> Iterator[str]:
    """Yield why the IFR of ``evaluation`` is not the expected one, if it is not."""
    if evaluation.rule_counts is None:
        yield f"{patch} has no score: {evaluation.status.replace('_', ' ')}: {evaluation.reason}"
        return
    rate = ifr(evaluation.rule_counts)
    if rate == expected:
        return
    unmet_additive, unmet_reductive = set(evaluation.unmet_additive), set(evaluation.unmet_reductive)
    met_additive = [rule.id for rule in evaluation.rules.positive if rule.id not in unmet_additive]
    met_reductive = [rule.id for rule in evaluation.rules.negative if rule.id not in unmet_reductive]
    causes: dict[str, Sequence[str]] = {
        "additive rules match nothing": evaluation.unmet_additive,
        "reductive rules still match": evaluation.unmet_reductive,
    }
    if not expected:
        causes = {"additive rules match R": met_additive, "reductive rules match nothing in R": met_reductive}
    details = []
    for cause, names in causes.items():
        shown = ", ".join([*names[:_MAX_LISTED], *(["…"] if len(names) > _MAX_LISTED else [])])
        details += [f"{cause}: {len(names)} ({shown})"] if names else []
    yield f"{patch} has IFR {rate:.3f} and not {expected:.0f}: {'; '.join(details)}"
