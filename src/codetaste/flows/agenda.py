"""The passes, steps and evaluations that a config selects, and their worst-case cost. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.catalog import Track
from codetaste.errors import ConfigError
from codetaste.flows import passes as discovery
from codetaste.flows.scorings import evaluation_tasks
from codetaste.flows.trials import StepKind, Trial, plan_trials, with_previous_steps
from codetaste.mistakes import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.evaluation.config import EvaluateConfig
    from codetaste.flows.passes import DiscoverConfig, DiscoveryPass
    from codetaste.flows.scorings import EvaluationTask
    from codetaste.flows.trials import Step, TrackConfig
    from codetaste.harness.config import AgentConfig


@dataclass(frozen=True, slots=True)
class FlowSections:
    """The config sections that select work: rule discovery, agents, tracks and evaluation."""

    discover: DiscoverConfig | None = None
    agents: Sequence[AgentConfig] = ()
    tracks: Sequence[TrackConfig] = ()
    evaluate: EvaluateConfig | None = None


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """The discovery passes, trial steps and evaluations of a run, including prerequisites.

    ``selected_keys`` are the job keys that the user selected; all other jobs are prerequisites of these.
    """

    passes: tuple[DiscoveryPass, ...] = ()
    steps: tuple[Step, ...] = ()
    evaluations: tuple[EvaluationTask, ...] = ()
    selected_keys: frozenset[str] = frozenset()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that the steps belong to."""
        return tuple({step.trial.key: step.trial for step in self.steps}.values())

    def worst_case_usd(self, discover: DiscoverConfig | None) -> Decimal | None:
        """Return the sum of the flows' budgets in US dollars; None where a flow has no budget."""
        passes_usd = discovery.worst_case_usd(discover, self.passes) if discover is not None else Decimal(0)
        trials_usd = sum(trial.agent.budget_usd for trial in self.trials)
        return None if passes_usd is None else passes_usd + trials_usd

    def check_descriptions(self, benchmark: Benchmark) -> None:
        """Check that every task has the descriptions that its agents and judges need.

        Raises:
            ConfigError: one line for each text that is missing, empty or not UTF-8.
        """
        needed, problems = list(self._descriptions_needed()), list[str]()
        for track in Track:
            instances = {instance.id: instance for instance, each in needed if each is track}
            try:
                benchmark.check_descriptions(instances.values(), track)
            except ConfigError as error:
                problems.extend(error.problems)
        if problems:
            raise ConfigError(*problems)

    def _descriptions_needed(self) -> Iterator[tuple[Instance, Track]]:
        yield from ((each.instance, Track.INSTRUCTED) for each in self.passes)
        for step in self.steps:
            # The judge always gets the whole description.
            judged = step.kind is StepKind.JUDGE
            yield step.trial.instance, Track.INSTRUCTED if judged else step.trial.track.track


def plan_flows(
    sections: FlowSections, instances: Sequence[Instance], labels: Mapping[str, str], only: Sequence[str] = ()
) -> FlowPlan:
    """List the work of a run.

    Args:
        sections: the config sections that select work.
        instances: those of the benchmark.
        labels: display names of the models, by id.
        only: globs on job keys; other jobs are left out unless a selected one needs them.

    Raises:
        ConfigError: a glob matches no job.
    """
    passes = (
        discovery.plan_passes(sections.discover, instances, labels) if sections.discover is not None else ()
    )
    steps = [
        step
        for trial in plan_trials(sections.agents, sections.tracks, instances, labels)
        for step in trial.steps
    ]
    evaluations = (
        evaluation_tasks(sections.evaluate, steps, instances) if sections.evaluate is not None else ()
    )
    keys = [
        *(each.key for each in passes),
        *(step.key for step in steps),
        *(task.key for task in evaluations),
    ]
    for glob in only:
        if not any(fnmatchcase(key, glob) for key in keys):
            raise ConfigError(f"--only {glob}: matches no job{did_you_mean(glob, keys)}")
    chosen = frozenset(key for key in keys if not only or any(fnmatchcase(key, glob) for glob in only))
    evaluations = tuple(each for each in evaluations if each.key in chosen)
    needed = chosen.union(*(each.needs for each in evaluations))
    return FlowPlan(
        tuple(each for each in passes if each.key in needed),
        with_previous_steps(step for step in steps if step.key in needed),
        evaluations,
        chosen,
    )
