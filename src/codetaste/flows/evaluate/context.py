"""The context that all evaluations of a run share: rules, baselines, the scanner, and a scratch folder."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

from anyio import Lock, to_thread

from codetaste.errors import CodetasteError
from codetaste.evaluation.pseudo_agents import PSEUDO_AGENTS
from codetaste.evaluation.rule_set import RuleSet, parse_rule_set, read_rule_set
from codetaste.evaluation.test_runs.recorded import RecordedBaseline, read_baseline, read_pseudo_agent_tests
from codetaste.flows.discover.result import DiscoveryResult
from codetaste.flows.sources import file_digest
from codetaste.orchestration.journal.results import result_from_json
from codetaste.rules.registration import Direction

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.evaluation.metrics import TestCounts
    from codetaste.flows.context import ScanContext
    from codetaste.flows.evaluate.plan import EvaluationTask


@dataclass(frozen=True, slots=True)
class InstanceReference:
    """The reference data that the predictions at one instance are compared with.

    Attributes:
        digest: hash of the benchmark's rules and golden patch.
        baseline: test results on R and R∘X*.
        tests: the test counts of the pseudo agents, whose predictions are R and R∘X*; None where unknown.
        problem: why the baseline is unknown; "" if it is known.
    """

    digest: str
    baseline: RecordedBaseline
    tests: Mapping[str, TestCounts | None] = field(default_factory=dict)
    problem: str = ""


@dataclass(frozen=True, slots=True)
class EvaluationInputs:
    """The inputs of one evaluation.

    Attributes:
        values: values of the jobs that it needs, by key.
        load_text: returns a text by its digest.
        timestamp: time of the evaluation, ISO 8601.
    """

    values: Mapping[str, Any]
    load_text: Callable[[str], Awaitable[str]]
    timestamp: str


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The context of a run's evaluations.

    Attributes:
        benchmark: the source of the tasks.
        out: the run's folder.
        config: the section ``[evaluate]``.
        scan: matches rules against trees.
        references: the reference data of each instance, by instance id.
        agent_configs: ``agent_config.json`` of each agent, by agent id.
    """

    benchmark: Benchmark
    out: Path
    config: EvaluateConfig
    scan: ScanContext
    references: Mapping[str, InstanceReference]
    agent_configs: Mapping[str, Mapping[str, Any]]
    _rules: dict[str, RuleSet] = field(default_factory=dict)
    _locks: dict[str, Lock] = field(default_factory=dict)

    @property
    def scratch(self) -> Path:
        """This run's own folder for patched trees, on the same disk as R."""
        name = sha256(str(self.out.absolute()).encode("utf-8", "surrogateescape")).hexdigest()[:16]
        return self.scan.cache / "predictions" / name

    def remove_scratch(self) -> None:
        """Remove what a killed process of this run left; only the process that owns the run may call this."""
        shutil.rmtree(self.scratch, ignore_errors=True)

    async def load_rules(self, task: EvaluationTask, inputs: EvaluationInputs) -> RuleSet:
        """Return the rules for ``task``, read once for all predictions at an instance.

        Raises:
            ConfigError: a rule file cannot be read.
            RuleError: a rule file is malformed.
            JournalError: the rules of a discovery pass are missing or damaged.
        """
        instance = task.instance
        async with self._locks.setdefault(instance.id, Lock()):
            if instance.id not in self._rules:
                if task.pass_keys:
                    passes = [result_from_json(DiscoveryResult, inputs.values[key]) for key in task.pass_keys]
                    positive, negative = [
                        (await inputs.load_text(each.rules_digest)).encode() for each in passes
                    ]
                    rules = await to_thread.run_sync(parse_rule_set, positive, negative)
                else:
                    rules = await to_thread.run_sync(read_rule_set, self.benchmark, instance)
                self._rules[instance.id] = rules
            return self._rules[instance.id]


def load_references(benchmark: Benchmark, tasks: Iterable[EvaluationTask]) -> dict[str, InstanceReference]:
    """Read the reference data of the instances of ``tasks``; return it by instance id."""
    instances = {task.instance.id: task.instance for task in tasks}
    return {name: _load_reference(benchmark, instance) for name, instance in instances.items()}


def _load_reference(benchmark: Benchmark, instance: Instance) -> InstanceReference:
    paths = [benchmark.rules_path(instance, side) for side in Direction]
    paths.append(benchmark.golden_path(instance))
    digest = sha256("\0".join(map(file_digest, paths)).encode()).hexdigest()
    try:
        tests = {agent: read_pseudo_agent_tests(benchmark, instance, agent) for agent in PSEUDO_AGENTS}
        return InstanceReference(digest, read_baseline(benchmark, instance), tests)
    except CodetasteError as error:
        return InstanceReference(digest, RecordedBaseline(), problem=str(error))
