"""The passes, steps and evaluations that a config selects, and their worst-case cost."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import Track
from codetaste.benchmark.trial_identity import StepKind
from codetaste.case_study.plan import worst_case_usd as worst_study_usd
from codetaste.core.text import did_you_mean
from codetaste.environment.record import names_environment
from codetaste.errors import ConfigError
from codetaste.flows.describe.plan import plan_descriptions
from codetaste.flows.describe.plan import worst_case_usd as worst_describe_usd
from codetaste.flows.discover.plan import plan_passes, worst_case_usd
from codetaste.flows.environment.plan import EnvironmentTask, plan_environments
from codetaste.flows.evaluate.plan import evaluation_tasks
from codetaste.flows.infer.plan import Trial, TrialNames, plan_trials, with_previous_steps

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.case_study.plan import StudyTask
    from codetaste.flows.describe.plan import DescriptionTask, ExistingDescriptions
    from codetaste.flows.discover.plan import DiscoveryPass
    from codetaste.flows.evaluate.plan import EvaluationTask
    from codetaste.flows.infer.plan import Step
    from codetaste.run.config import Config
    from codetaste.swe_refactor.trials.plan import StrategyTrial


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """Descriptions, discovery passes, environments, trial steps, evaluations of a run, with prerequisites.

    ``selected_keys`` are the job keys that the user selected; all other jobs are prerequisites of these.
    ``tested`` are the evaluations whose test runs are selected or needed, ``refactored`` those whose
    refactorings are compared; ``strategy_trials`` are those of SWE-Refactor, ``studies`` are about
    the trials of another run.
    """

    descriptions: tuple[DescriptionTask, ...] = ()
    passes: tuple[DiscoveryPass, ...] = ()
    environments: tuple[EnvironmentTask, ...] = ()
    steps: tuple[Step, ...] = ()
    evaluations: tuple[EvaluationTask, ...] = ()
    tested: tuple[EvaluationTask, ...] = ()
    selected_keys: frozenset[str] = frozenset()
    refactored: tuple[EvaluationTask, ...] = ()
    strategy_trials: tuple[StrategyTrial, ...] = ()
    studies: tuple[StudyTask, ...] = ()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """The trials that the steps belong to."""
        return tuple({step.trial.key: step.trial for step in self.steps}.values())

    @property
    def runs_agents(self) -> bool:
        """Whether agents work in sandboxes, whose output is collected at the end."""
        return bool(self.steps or self.environments or self.strategy_trials or self.studies)

    @property
    def described(self) -> frozenset[tuple[str, Track]]:
        """The descriptions that the run makes, by instance id and track."""
        return frozenset((task.instance.id, task.track) for task in self.descriptions)

    def worst_case_usd(self, config: Config) -> Decimal | None:
        """Return the sum of the flows' budgets in US dollars; None where a flow has no budget."""
        described_usd = (
            worst_describe_usd(config.describe, self.descriptions) if config.describe else Decimal(0)
        )
        passes_usd = worst_case_usd(config.discover, self.passes) if config.discover else Decimal(0)
        trials_usd = sum(trial.worst_case[0] for trial in self.trials)
        setup_usd = sum((task.limits.usd or Decimal(0) for task in self.environments), Decimal(0))
        flows_usd = [described_usd, passes_usd, *(each.worst_case_usd for each in self.strategy_trials)]
        limited = [each for each in flows_usd if each is not None]
        if len(limited) < len(flows_usd):
            return None
        return sum(limited, Decimal(0)) + trials_usd + setup_usd + worst_study_usd(self.studies)

    def check_descriptions(self, existing: ExistingDescriptions) -> None:
        """Check that every task has the descriptions that its agents and judges need, or that the run makes.

        Raises:
            ConfigError: one line for each text that is missing, empty, not UTF-8, or rejected in a review.
        """
        problems, made = list[str](), self.described
        for track in Track:
            needed = [instance for instance, each in self._descriptions_needed() if each is track]
            instances = {each.id: each for each in needed if (each.id, track) not in made}
            try:
                existing.benchmark.check_descriptions(instances.values(), track)
            except ConfigError as error:
                problems.extend(error.problems)
            for instance in instances.values():
                if (review := existing.rejected(instance, track)) is not None:
                    problems.append(
                        f"the {track} description of {instance.id} was rejected by {review.by}: let "
                        "[describe] make another one, or edit it with codetaste review"
                    )
        if problems:
            raise ConfigError(*problems)

    def _descriptions_needed(self) -> Iterator[tuple[Instance, Track]]:
        yield from ((each.instance, Track.INSTRUCTED) for each in self.passes)
        for step in self.steps:
            # The judge always gets the whole description.
            judged = step.kind is StepKind.JUDGE
            yield step.trial.instance, Track.INSTRUCTED if judged else step.trial.track.track


def plan_flows(
    config: Config,
    instances: Sequence[Instance],
    only: Sequence[str] = (),
    *,
    existing: ExistingDescriptions | None = None,
    strategy_trials: Sequence[StrategyTrial] = (),
    studies: Sequence[StudyTask] = (),
) -> FlowPlan:
    """List the work of a run at ``instances``.

    ``only`` are globs on job keys; other jobs are left out unless a selected one needs them. With
    ``existing`` descriptions those that are missing are made, and the runtime images are used that their
    benchmark names.

    Raises:
        ConfigError: a glob matches no job, or an open description has nothing to be made of.
    """
    labels, benchmark = config.labels(), None if existing is None else existing.benchmark
    descriptions: tuple[DescriptionTask, ...] = ()
    if config.describe is not None and existing is not None:
        label = labels[config.describe.model]
        descriptions = plan_descriptions(config.describe, instances, label, existing)
    made = {(each.instance.id, each.track): each.key for each in descriptions}
    passes = plan_passes(config.discover, instances, labels, made) if config.discover is not None else ()
    environments = _environments(config, instances, labels, benchmark)
    images = {each.instance.id: each.image_key for each in environments}
    names = TrialNames(labels, config.scripted_models(), images, made)
    trials = plan_trials(config.agents, config.tracks, instances, names)
    steps = [step for trial in trials for step in trial.steps]
    evaluations = evaluation_tasks(config.evaluate, steps, instances) if config.evaluate is not None else ()
    keys = [
        *(each.key for each in descriptions),
        *(each.key for each in passes),
        *(each.key for each in environments if each.proves),
        *(each.image_key for each in environments),
        *(step.key for step in steps),
        *dict.fromkeys(key for task in evaluations for key in task.test_titles),
        *(task.key for task in evaluations),
        *(task.refactorings_key for task in evaluations if task.refactorings),
        *(key for trial in strategy_trials for key in (trial.answer_key, trial.score_key)),
        *(each.key for each in studies),
    ]
    for glob in only:
        if not any(fnmatchcase(key, glob) for key in keys):
            raise ConfigError(f"--only {glob}: matches no job{did_you_mean(glob, keys)}")
    chosen = frozenset(key for key in keys if not only or any(fnmatchcase(key, glob) for glob in only))
    scored = tuple(each for each in evaluations if each.key in chosen)
    refactored = tuple(each for each in evaluations if each.refactorings_key in chosen)
    needed = chosen.union(*(each.needs for each in scored), *(each.refactoring_needs for each in refactored))
    tested = tuple(each for each in evaluations if needed.intersection(each.test_titles))
    needed = needed.union(*((each.image_key, *each.patch_keys) for each in tested))
    chosen_steps = with_previous_steps(step for step in steps if step.key in needed)
    needed = needed.union(*(step.needs for step in chosen_steps))
    needed = needed.union(*(each.needs for each in passes if each.key in needed))
    needed = needed.union(*(each.needs for each in descriptions if each.key in needed))
    return FlowPlan(
        tuple(each for each in descriptions if each.key in needed),
        tuple(each for each in passes if each.key in needed),
        tuple(each for each in environments if {each.key, each.image_key} & needed),
        chosen_steps,
        scored,
        tested,
        chosen,
        refactored,
        tuple(each for each in strategy_trials if {each.answer_key, each.score_key} & chosen),
        tuple(each for each in studies if each.key in chosen),
    )


def _environments(
    config: Config, instances: Sequence[Instance], labels: Mapping[str, str], benchmark: Benchmark | None
) -> tuple[EnvironmentTask, ...]:
    """Return the environments that are proven by this run, or that its trials and test runs use."""
    if config.environment is not None:
        agent = config.setup_agent()
        label = "" if agent is None else labels[agent.model]
        return plan_environments(config.environment, agent, label, instances)
    tested = config.evaluate is not None and config.evaluate.tests
    return tuple(
        EnvironmentTask(instance, proves=False, builds=tested)
        for instance in instances
        if tested or (benchmark is not None and names_environment(benchmark, instance))
    )
