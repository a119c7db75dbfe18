"""The section ``[[tracks]]``, the trials that it selects, and their steps.

A trial is one attempt of one agent at one instance (CodeTaste §3.5). On the instructed track the agent gets
the whole description, on the open track only the area to improve. There are three modes: *direct*; *plan*,
where a fresh agent carries out the plan of the first one; *multiplan*, where a judge who gets the whole
description picks one of five plans. The paper has the two with plans on the open track only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from codetaste.benchmark.layout import Mode, Track
from codetaste.benchmark.trial_identity import StepKind, TrialIdentity
from codetaste.core.section import Section
from codetaste.core.units import Seconds
from codetaste.flows.job_keys import sources_key
from codetaste.orchestration.budget.cost import BudgetLimits

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from decimal import Decimal
    from typing import Self

    from codetaste.benchmark.instance import Instance
    from codetaste.harness.config import AgentConfig

PLAN_COUNT = 5
"""Number of plans in the mode multiplan (CodeTaste, Figure 16)."""


class TrackConfig(Section):
    """``[[tracks]]``: how much of the description the agents get, and whether they plan first."""

    track: Track
    """"instructed" or "open"."""
    mode: Mode = Mode.DIRECT
    """"direct", "plan" or "multiplan"; the paper has the two with plans on the open track only."""
    judge: str | None = None
    """The id of the model that picks one of the five plans of "multiplan"."""
    judge_max_output_tokens: int = Field(default=8192, ge=256)
    """The cap of one reply of the judge, thinking included."""
    budgets: Literal["trial", "step"] = "trial"
    """Whether an agent's budget_usd and time_limit are for a whole trial, or for each of its steps as in the
    published harness."""
    attempts: int = Field(default=1, ge=1, le=1000)
    """Trials of each agent at each instance."""
    plan_time_limit: Seconds = 30 * 60.0
    """Working time of all attempts of the plan step together; with budgets = "trial" it also counts towards
    the trial's limit."""
    plan_attempts: int = Field(default=3, ge=1, le=3)
    """Maximum number of attempts at a usable plan."""
    agents: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Ids of [[agents]]; default is all of them."""

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.mode is Mode.MULTIPLAN and self.judge is None:
            raise ValueError('the mode "multiplan" needs a judge: the id of one of [[models]]')
        if self.mode is not Mode.MULTIPLAN and self.judge is not None:
            raise ValueError('only the mode "multiplan" has a judge')
        return self

    @property
    def by_step(self) -> bool:
        """Whether each step of a trial has a budget of its own."""
        return self.budgets == "step"

    @property
    def name(self) -> str:
        """The display name, such as "open/plan"."""
        return f"{self.track}/{self.mode}"

    def includes(self, agent_id: str) -> bool:
        """Whether the agent takes part in this track."""
        return self.agents is None or agent_id in self.agents


_STEPS = {
    Mode.DIRECT: (StepKind.EXECUTE,),
    Mode.PLAN: (StepKind.PLAN, StepKind.EXECUTE),
    Mode.MULTIPLAN: (StepKind.PLAN, StepKind.JUDGE, StepKind.EXECUTE),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One agent, one track and mode, one instance, one attempt (from 1)."""

    agent: AgentConfig
    track: TrackConfig
    instance: Instance
    attempt: int
    model_labels: Mapping[str, str]
    """Display names of models by id; that of a scripted model says that it is scripted."""
    scripted: bool
    """Whether the agent's model is scripted."""
    image_key: str = ""
    """The key of the job that makes or finds the instance's runtime image; "" where there is none."""
    descriptions: Mapping[Track, str] = field(default_factory=dict)
    """The keys of the jobs that make its instance's descriptions, for those that the run makes."""

    @property
    def identity(self) -> TrialIdentity:
        """What identifies it within the run."""
        return TrialIdentity(self.agent.id, self.track.track, self.track.mode, self.instance.id, self.attempt)

    @property
    def budget_name(self) -> str:
        """The name of the budget that all its steps share."""
        return self.identity.name

    @property
    def key(self) -> str:
        """The prefix of its jobs' keys."""
        return self.identity.key

    @property
    def title(self) -> str:
        """The display name."""
        return self.describe(self.track.name)

    def describe(self, what: str) -> str:
        """Return a display name with ``what``, which comes early because the end may be truncated."""
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{self.instance.id} {self.group_of(what)}{again}"

    def group_of(self, what: str) -> str:
        """Return the name under which ``what`` of its agent's trials is counted."""
        hint = ", scripted" if self.scripted and self.agent.id != "scripted" else ""
        return f"{what} by {self.agent.id}{hint}"

    @property
    def limits(self) -> BudgetLimits:
        """The limits of all its steps together; none if each step has its own."""
        agent = self.agent
        if self.track.by_step:
            return BudgetLimits()
        return BudgetLimits(usd=agent.budget_usd, working_s=agent.time_limit)

    @property
    def worst_case(self) -> tuple[Decimal, float]:
        """US dollars and working seconds that its steps may use together."""
        budgets = len(self.steps) if self.track.by_step else 1
        return self.agent.budget_usd * budgets, self.agent.time_limit * budgets

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps in their order."""
        return tuple(Step(self, kind) for kind in _STEPS[self.track.mode])


@dataclass(frozen=True, slots=True)
class Step:
    """One job of a trial."""

    trial: Trial
    kind: StepKind

    @property
    def key(self) -> str:
        """The job's key."""
        return self.trial.identity.step_key(self.kind)

    @property
    def title(self) -> str:
        """The job's display name."""
        return self.trial.describe(self._what)

    @property
    def group(self) -> str:
        """The name under which it is counted."""
        return self.trial.group_of(self._what)

    @property
    def _what(self) -> str:
        track = self.trial.track
        return track.name if track.mode is Mode.DIRECT else f"{track.name} {self.kind}"

    @property
    def model_id(self) -> str:
        """The id of the model that it calls."""
        judge = self.trial.track.judge
        return judge if self.kind is StepKind.JUDGE and judge is not None else self.trial.agent.model

    @property
    def limits(self) -> BudgetLimits:
        """The limits of this step alone."""
        trial = self.trial
        plan_s = trial.track.plan_time_limit if self.kind is StepKind.PLAN else None
        if not trial.track.by_step:
            return BudgetLimits(working_s=plan_s)
        limit_s = trial.agent.time_limit if plan_s is None else min(plan_s, trial.agent.time_limit)
        return BudgetLimits(usd=trial.agent.budget_usd, working_s=limit_s)

    @property
    def lane(self) -> str:
        """The display name of that model; jobs of one model share a lane of the scheduler."""
        return self.trial.model_labels[self.model_id]

    @property
    def previous_steps(self) -> tuple[Step, ...]:
        """The earlier steps of the trial, whose results this one needs."""
        kinds = _STEPS[self.trial.track.mode]
        return tuple(Step(self.trial, kind) for kind in kinds[: kinds.index(self.kind)])

    @property
    def sources_key(self) -> str:
        """The key of the job that checks out the instance's trees."""
        return sources_key(self.trial.instance)

    @property
    def install_key(self) -> str:
        """The key of the job that installs the CLI agent; "" for the own agent."""
        return "" if self.trial.agent.uses_own_loop else f"install/{self.trial.agent.id}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        earlier = tuple(step.key for step in self.previous_steps)
        if self.kind is StepKind.JUDGE:
            return (*filter(None, (self._description_key,)), *earlier)
        keys = (self.sources_key, self.trial.image_key, self.install_key, self._description_key, *earlier)
        return tuple(filter(None, keys))

    @property
    def _description_key(self) -> str:
        """The key of the job that makes the description in its prompt; "" where there is none."""
        track = self.trial.track
        if self.kind is StepKind.EXECUTE and track.mode is not Mode.DIRECT:
            return ""  # its prompt has the plan
        # The judge always gets the whole description.
        needed = Track.INSTRUCTED if self.kind is StepKind.JUDGE else track.track
        return self.trial.descriptions.get(needed, "")


@dataclass(frozen=True, slots=True)
class TrialNames:
    """What trials are named by and wait for.

    Attributes:
        models: display names of models, by id.
        scripted: ids of scripted models.
        images: key of the job of the runtime image, by instance id, where there is one.
        descriptions: key of the job of a description, by instance id and track, where there is one.
    """

    models: Mapping[str, str]
    scripted: Collection[str]
    images: Mapping[str, str] = field(default_factory=dict)
    descriptions: Mapping[tuple[str, Track], str] = field(default_factory=dict)

    def descriptions_of(self, instance: Instance) -> dict[Track, str]:
        """Return the keys of the jobs that make descriptions of an instance."""
        return {
            track: self.descriptions[instance.id, track]
            for track in Track
            if (instance.id, track) in self.descriptions
        }


def plan_trials(
    agents: Sequence[AgentConfig],
    tracks: Sequence[TrackConfig],
    instances: Iterable[Instance],
    names: TrialNames,
) -> tuple[Trial, ...]:
    """List the trials: agents × tracks × instances × attempts."""
    return tuple(
        Trial(
            agent,
            track,
            instance,
            attempt,
            names.models,
            agent.model in names.scripted,
            names.images.get(instance.id, ""),
            names.descriptions_of(instance),
        )
        for instance in instances
        for track in tracks
        for agent in agents
        if track.includes(agent.id)
        for attempt in range(1, track.attempts + 1)
    )


def with_previous_steps(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Add the earlier steps of the same trials, each before the steps that need it."""
    return tuple({each.key: each for step in steps for each in (*step.previous_steps, step)}.values())
