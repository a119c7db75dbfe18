"""``TrialContext``: what all trials of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.benchmark import Benchmark
from codetaste.flows.inputs import InputSource

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.flows.agents.run import AgentServices
    from codetaste.flows.context import ModelSet
    from codetaste.harness.adapter import Adapter
    from codetaste.llm.prompts import Prompts
    from codetaste.refactorings.service import RefactoringService
    from codetaste.swe_refactor.config import SweRefactorConfig
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.examples.find import ExampleFinder
    from codetaste.swe_refactor.trials.pair.services import PairServices
    from codetaste.swe_refactor.trials.sources import BaseBuilds, InstanceSource


@dataclass(frozen=True, slots=True)
class TrialContext:
    """The context of the trials.

    Attributes:
        out: the run's folder.
        cache: folder of data that is shared by runs.
        config: the section.
        models: the open models of the run.
        prompts: the prompts.
        sources: where instances are from, by unique id.
        bases: builds of the files before.
        miner: RefactoringMiner.
        finders: what finds examples, by the titles of the strategies that have them.
        pair: what developers and reviewers work with; None if no strategy has them.
        agents: sandboxes, and the runners of agents.
        adapters: of command-line agents, by the agent's id.
        sandbox_memory: of one build, bytes.
    """

    out: Path
    cache: Path
    config: SweRefactorConfig
    models: ModelSet
    prompts: Prompts
    sources: Mapping[str, InstanceSource]
    bases: BaseBuilds
    miner: RefactoringService
    finders: Mapping[str, ExampleFinder]
    pair: PairServices | None
    agents: AgentServices
    adapters: Mapping[str, Adapter]
    sandbox_memory: int

    @property
    def input_source(self) -> InputSource:
        """What the inputs of answers are taken from."""
        return InputSource(Benchmark(self.out, ()), self.prompts, self.models.fingerprints)

    def source(self, instance: RefactoringInstance) -> InstanceSource:
        """Return where an instance is from."""
        return self.sources[instance.unique_id]
