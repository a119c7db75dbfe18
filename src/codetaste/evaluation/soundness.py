"""Whether instances are sound: the human's patch follows every rule, doing nothing follows none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.benchmark.catalog import Track
from codetaste.errors import ConfigError, RuleError, SourceError
from codetaste.evaluation.baseline import correctness, pseudo_tests, read_baseline
from codetaste.evaluation.evaluate import Evaluation, evaluate
from codetaste.evaluation.pseudo import NULL_PATCH, golden_patch
from codetaste.evaluation.records import GOLDEN, NULL
from codetaste.evaluation.rule_files import read_rule_files
from codetaste.evaluation.score import LEAST_PASSED, LEAST_TESTS, ifr
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.baseline import Correctness
    from codetaste.evaluation.rule_files import RuleFiles
    from codetaste.evaluation.score import TestCounts
    from codetaste.rules.scan import Scanner

AT_ONCE = 2
_NAMED = 5


@dataclass(frozen=True, slots=True)
class Soundness:
    """What is known of one instance.

    Attributes:
        instance: its id.
        skipped: why it was not looked at, "" if it was.
        reasons: what speaks against it, a line each; none for a sound one.
        notes: what else a person should know.
        golden: the evaluation of X*, None where there is none.
        null: the evaluation of an empty patch.
    """

    instance: str
    skipped: str = ""
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    golden: Evaluation | None = None
    null: Evaluation | None = None

    @property
    def sound(self) -> bool | None:
        """Whether nothing speaks against it; None where nobody looked."""
        return None if self.skipped else not self.reasons


@dataclass(frozen=True, slots=True)
class Bench:
    """What checking takes: ``engine`` names the rule engine, ``scratch`` is an existing folder."""

    benchmark: Benchmark
    scanner: Scanner
    cache: Path
    scratch: Path
    engine: str


async def check_all(
    bench: Bench, instances: Sequence[Instance], done: Callable[[Soundness], None]
) -> list[Soundness]:
    """Check ``instances``, a few at once; ``done`` is called with each as it ends. In the order given.

    Raises:
        ExceptionGroup: of what speaks against no instance: the rule engine could not be run at all
            (EngineError), there is no git (ToolMissing), no space left (StorageFull).
    """
    slots = anyio.CapacityLimiter(AT_ONCE)
    checked: dict[str, Soundness] = {}

    async def one(instance: Instance) -> None:
        async with slots:
            try:
                result = await check_instance(bench, instance)
            except (ConfigError, RuleError, SourceError) as error:
                result = Soundness(instance.id, reasons=tuple(str(error).splitlines()))
            checked[instance.id] = result
            done(result)

    async with anyio.create_task_group() as tasks:
        for instance in instances:
            tasks.start_soon(one, instance)
    return [checked[instance.id] for instance in instances]


async def check_instance(bench: Bench, instance: Instance) -> Soundness:
    """Look at all that an instance needs, and score both pseudo agents on it.

    Raises:
        SourceError: its trees cannot be had.
        EngineError: the rule engine could not be run at all.
    """
    benchmark = bench.benchmark
    if lacking := benchmark.lacks_clone(instance):
        return Soundness(instance.id, skipped=lacking)
    try:
        known = await to_thread.run_sync(_known, benchmark, instance)
    except (ConfigError, RuleError) as error:
        texts = await to_thread.run_sync(lambda: tuple(_texts_amiss(benchmark, instance)))
        return Soundness(instance.id, reasons=(*texts, *str(error).splitlines()))
    golden, null = await _pseudo_agents(bench, instance, known)
    reasons = (
        *known.reasons,
        *_amiss(golden, "the golden patch", 1.0),
        *_amiss(null, "an empty patch", 0.0),
    )
    return Soundness(instance.id, "", reasons, (*known.notes, *golden.notes), golden, null)


@dataclass(frozen=True, slots=True)
class _Known:
    """What the benchmark's folder has of an instance."""

    rules: RuleFiles
    correctness: Mapping[str, Correctness]
    reasons: tuple[str, ...]
    notes: tuple[str, ...]


def _known(benchmark: Benchmark, instance: Instance) -> _Known:
    rules, baseline = read_rule_files(benchmark, instance), read_baseline(benchmark, instance)
    tests = {agent: pseudo_tests(benchmark, instance, agent) for agent in (GOLDEN, NULL)}
    unknown = ["no test baseline is recorded: PASS cannot be known"] if baseline.bounds is None else []
    directions = (("additive", rules.positive), ("reductive", rules.negative))
    return _Known(
        rules=rules,
        correctness={agent: correctness(counts, baseline) for agent, counts in tests.items()},
        reasons=(
            *_texts_amiss(benchmark, instance),
            *_tests_amiss(tests[GOLDEN], "R∘X*"),
            *_tests_amiss(tests[NULL], "R"),
        ),
        notes=(
            *(f"there are no {name} rules" for name, found in directions if not found),
            *unknown,
            *baseline.notes,
        ),
    )


async def _pseudo_agents(bench: Bench, instance: Instance, known: _Known) -> tuple[Evaluation, Evaluation]:
    trees = await materialise(bench.benchmark.origin(instance), bench.cache)
    golden = await golden_patch(bench.benchmark, instance, trees, bench.scratch)
    null, best = [
        await evaluate(
            known.rules,
            trees.base,
            patch,
            bench.scanner,
            scratch=bench.scratch,
            correctness=known.correctness[agent],
            engine=bench.engine,
        )
        for agent, patch in ((NULL, NULL_PATCH), (GOLDEN, golden))
    ]
    return best, null


def _texts_amiss(benchmark: Benchmark, instance: Instance) -> Iterator[str]:
    for track in Track:
        try:
            benchmark.description(instance, track)
        except ConfigError as error:
            yield from error.problems


def _tests_amiss(tests: TestCounts | None, tree: str) -> Iterator[str]:
    """Say what keeps a test suite from telling anything (CodeTaste §3.3)."""
    if tests is not None and not tests.is_valid:
        why = f" ({tests.error})" if tests.error else ""
        yield (
            f"the tests on {tree} say too little: {tests.passed} of {tests.total} passed{why}; "
            f"it takes {LEAST_TESTS} tests and {LEAST_PASSED:.0%} passed"
        )


def _amiss(evaluation: Evaluation, what: str, wanted: float) -> Iterator[str]:
    """Say why the rate of ``evaluation`` is not the one it must be."""
    if evaluation.counts is None:
        yield f"{what} has no score: {evaluation.status.replace('_', ' ')}: {evaluation.why}"
        return
    rate = ifr(evaluation.counts)
    if rate == wanted:
        return
    lacking, remaining = set(evaluation.lacking), set(evaluation.remaining)
    matching = [rule.id for rule in evaluation.rules.positive if rule.id not in lacking]
    gone = [rule.id for rule in evaluation.rules.negative if rule.id not in remaining]
    sides = (
        ("additive rules match nothing", evaluation.lacking if wanted else ()),
        ("reductive rules still match", evaluation.remaining if wanted else ()),
        ("additive rules match R", () if wanted else matching),
        ("reductive rules match nothing in R", () if wanted else gone),
    )
    told = "; ".join(f"{how}: {len(names)} ({_some(names)})" for how, names in sides if names)
    yield f"{what} has IFR {rate:.3f} and not {wanted:.0f}: {told}"


def _some(names: Sequence[str]) -> str:
    return ", ".join([*names[:_NAMED], *(["…"] if len(names) > _NAMED else [])])
