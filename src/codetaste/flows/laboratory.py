"""What all evaluations of a run share: rules, baselines, the scanner, and a place for patched trees."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from anyio import Lock, to_thread

from codetaste.errors import CodetasteError, ConfigError
from codetaste.evaluation.baseline import RecordedBaseline, pseudo_tests, read_baseline
from codetaste.evaluation.pseudo import PSEUDO_AGENTS
from codetaste.evaluation.rule_files import RuleFiles, parse_rule_files, read_rule_files
from codetaste.rules.verdict import Direction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.evaluation.score import TestCounts
    from codetaste.flows.scorings import Scoring
    from codetaste.flows.site import Site
    from codetaste.rules.scan import Scanner


@dataclass(frozen=True, slots=True)
class Yardstick:
    """What the predictions at one instance are held against.

    Attributes:
        digest: stands for the benchmark's rules and golden patch.
        baseline: what the tests did on R and R∘X*.
        tests: the same by pseudo agent, whose predictions these two are; None where it is not known.
        problem: why the baseline is not known, "" if it is.
    """

    digest: str
    baseline: RecordedBaseline
    tests: Mapping[str, TestCounts | None] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Laboratory:
    """Where predictions are scored.

    Attributes:
        benchmark: where the tasks come from.
        out: the run's folder.
        cache: where trees are kept between runs.
        config: the section.
        scanner: matches rules against trees, and remembers.
        engine_version: the rule engine's; counts depend on it.
        engine: which program that is, for the record.
        ignore: the text of the benchmark's ignore file; counts depend on it too.
        warnings: what a person should know.
        yardsticks: what the predictions at each instance are held against, by its id.
        site: where the trials took place, None where there are none.
    """

    benchmark: Benchmark
    out: Path
    cache: Path
    config: EvaluateConfig
    scanner: Scanner
    engine_version: str
    engine: str
    ignore: str
    yardsticks: Mapping[str, Yardstick]
    warnings: tuple[str, ...] = ()
    site: Site | None = None
    _rules: dict[str, RuleFiles] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        """This run's own folder for patched trees, on the disk where R lies."""
        name = sha256(str(self.out.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.cache / "predictions" / name

    def trials_site(self) -> Site:
        """Return where the trials took place.

        Raises:
            ConfigError: nobody opened a site, which is a fault of whoever made this laboratory.
        """
        if self.site is None:
            raise ConfigError("a trial is to be scored, and no site is open")
        return self.site

    def sweep(self) -> None:
        """Remove what a killed process of this run has left; only for whoever owns the run. Blocks."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    async def rules(
        self, scoring: Scoring, values: Mapping[str, Any], fetch: Callable[[str], Awaitable[str]]
    ) -> RuleFiles:
        """Return the rules for ``scoring``, read once for all predictions at an instance.

        Args:
            scoring: whose.
            values: of the jobs that it needs, by key.
            fetch: returns a text by its digest.

        Raises:
            ConfigError: a file cannot be read.
            RuleError: it is malformed.
            JournalError: what a pass has found is missing or damaged.
        """
        instance = scoring.instance
        async with self._locks.setdefault(instance.id, Lock()):
            if instance.id not in self._rules:
                if scoring.passes:
                    positive, negative = [
                        (await fetch(values[key]["yaml"])).encode() for key in scoring.passes
                    ]
                    rules = await to_thread.run_sync(parse_rule_files, positive, negative)
                else:
                    rules = await to_thread.run_sync(read_rule_files, self.benchmark, instance)
                self._rules[instance.id] = rules
            return self._rules[instance.id]


def measure(benchmark: Benchmark, scorings: Iterable[Scoring]) -> dict[str, Yardstick]:
    """Read what the instances of ``scorings`` are held against, by their ids. Blocks."""
    instances = {scoring.instance.id: scoring.instance for scoring in scorings}
    return {name: _yardstick(benchmark, instance) for name, instance in instances.items()}


def _yardstick(benchmark: Benchmark, instance: Instance) -> Yardstick:
    paths = [benchmark.rules_path(instance, side) for side in Direction]
    paths.append(benchmark.golden_path(instance))
    held = sha256("\0".join(map(_digest, paths)).encode()).hexdigest()
    try:
        tests = {agent: pseudo_tests(benchmark, instance, agent) for agent in PSEUDO_AGENTS}
        return Yardstick(held, read_baseline(benchmark, instance), tests)
    except CodetasteError as error:
        return Yardstick(held, RecordedBaseline(), problem=str(error))


def _digest(path: Path) -> str:
    """Stand for a file's content; "" where there is none that can be read."""
    try:
        return sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
