"""Which predictions a config asks to have scored; nothing is done yet.

A prediction is a trial's, or that of a pseudo agent: the golden patch, and none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.evaluation.records import GOLDEN, NULL
from codetaste.flows.trials import StepKind
from codetaste.rules.verdict import Direction

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.flows.trials import Step, Trial


@dataclass(frozen=True, slots=True)
class Scoring:
    """One job: one prediction at one instance. ``execution`` is what makes it; None for a pseudo agent."""

    instance: Instance
    agent_id: str
    execution: Step | None = None
    rules_by: str | None = None
    """The id of the model that finds the rules in this run, None for those of the benchmark."""

    @property
    def trial(self) -> Trial | None:
        """The trial that it scores, None for a pseudo agent."""
        return None if self.execution is None else self.execution.trial

    @property
    def key(self) -> str:
        """The job's key."""
        trial = self.trial
        return f"evaluate/{self.agent_id}/{self.instance.id}" if trial is None else f"evaluate/{trial.node}"

    @property
    def title(self) -> str:
        """The job's name for people."""
        trial = self.trial
        if trial is None:
            return f"{self.instance.id} scores of {self.agent_id}"
        return trial.title_of(f"{trial.track.name} scores")

    @property
    def sources(self) -> str:
        """The key of the job that brings the instance's trees to disk."""
        return f"sources/{self.instance.id}"

    @property
    def passes(self) -> tuple[str, ...]:
        """The keys of the jobs that find the rules; none where the benchmark has them."""
        if self.rules_by is None:
            return ()
        return tuple(f"discover/{self.rules_by}/{self.instance.id}/{side.value}" for side in Direction)

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        made = () if self.execution is None else (self.execution.key,)
        return (self.sources, *made, *self.passes)


def scorings(
    config: EvaluateConfig, steps: Iterable[Step], instances: Iterable[Instance]
) -> tuple[Scoring, ...]:
    """List what is to be scored: the pseudo agents' predictions first, since they are there at once."""
    return tuple(_listed(config, steps, instances))


def _listed(
    config: EvaluateConfig, steps: Iterable[Step], instances: Iterable[Instance]
) -> Iterator[Scoring]:
    by = config.discovered_by
    if config.references:
        for instance in instances:
            yield Scoring(instance, GOLDEN, rules_by=by)
            yield Scoring(instance, NULL, rules_by=by)
    for step in steps:
        if step.kind is StepKind.EXECUTE:
            yield Scoring(step.trial.instance, step.trial.agent.id, step, by)
