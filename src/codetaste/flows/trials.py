"""Which trials a config asks for, in which steps, and what they can take at most; nothing is done yet.

A trial is one agent's go at one instance (CodeTaste §3.5): on the instructed track from the whole
description, on the open track from the area alone. There the mode says how: *direct*; *plan*, where a fresh
agent carries out the plan of the first one; *multiplan*, where a judge who knows the whole description picks
one of five.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from codetaste.benchmark.catalog import Track
from codetaste.section import Section
from codetaste.units import Seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Self

    from codetaste.benchmark.instance import Instance
    from codetaste.harness.config import AgentConfig

PLANS = 5
"""How many plans the multiplan mode asks for (CodeTaste, Figure 16)."""


class TrackConfig(Section):
    """``[[tracks]]``: how much the agents are told, and whether they plan first."""

    track: Track
    """"instructed" or "open"."""
    mode: Literal["direct", "plan", "multiplan"] = "direct"
    """On the instructed track only "direct"."""
    judge: str | None = None
    """The id of the model that picks one of the five plans of "multiplan"."""
    attempts: int = Field(default=1, ge=1, le=1000)
    """Trials of each agent at each instance."""
    plan_time_limit: Seconds = 30 * 60.0
    """Working time of the plan step, all its tries together; it counts for the trial's time limit too."""
    plan_attempts: int = Field(default=3, ge=1, le=3)
    """How often the agent may begin anew when it left no plan that can be used."""
    agents: tuple[str, ...] | None = Field(default=None, min_length=1)
    """Ids of [[agents]]; all of them where nothing is said."""

    @model_validator(mode="after")
    def _goes_together(self) -> Self:
        if self.track is Track.INSTRUCTED and self.mode != "direct":
            raise ValueError('the track "instructed" has the mode "direct" only: its description is the plan')
        if self.mode == "multiplan" and self.judge is None:
            raise ValueError('the mode "multiplan" needs a judge: the id of one of [[models]]')
        if self.mode != "multiplan" and self.judge is not None:
            raise ValueError('only the mode "multiplan" has a judge')
        return self

    @property
    def name(self) -> str:
        """What it is called among people: "open/plan"."""
        return f"{self.track}/{self.mode}"

    def takes(self, agent_id: str) -> bool:
        """Whether this agent is to work on it."""
        return self.agents is None or agent_id in self.agents


class StepKind(StrEnum):
    """What a job of a trial does."""

    PLAN = "plan"
    JUDGE = "judge"
    EXECUTE = "execute"


_STEPS = {
    "direct": (StepKind.EXECUTE,),
    "plan": (StepKind.PLAN, StepKind.EXECUTE),
    "multiplan": (StepKind.PLAN, StepKind.JUDGE, StepKind.EXECUTE),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """One agent, one track and mode, one instance, one attempt (from 1)."""

    agent: AgentConfig
    track: TrackConfig
    instance: Instance
    attempt: int
    labels: Mapping[str, str]
    """The models for people, by id: a scripted one is never shown as if it were real."""

    @property
    def node(self) -> str:
        """The name of its budget, which all its steps draw from."""
        again = f"/attempt-{self.attempt}" if self.attempt > 1 else ""
        return f"{self.agent.id}/{self.track.name}/{self.instance.id}{again}"

    @property
    def key(self) -> str:
        """What its jobs' keys begin with."""
        return f"infer/{self.node}"

    @property
    def title(self) -> str:
        """Its name for people."""
        return self.title_of(self.track.name)

    def title_of(self, what: str) -> str:
        """Name ``what`` of it for people: what tells its steps apart comes before what may be cut off."""
        again = f", attempt {self.attempt}" if self.attempt > 1 else ""
        return f"{self.instance.id} {what} by {self.agent_label}{again}"

    @property
    def agent_label(self) -> str:
        """The agent for people."""
        label = self.labels[self.agent.model]
        scripted = label.endswith("scripted") and not self.agent.id.endswith("scripted")
        return f"{self.agent.id}, scripted" if scripted else self.agent.id

    @property
    def steps(self) -> tuple[Step, ...]:
        """Its jobs, in their order."""
        return tuple(Step(self, kind) for kind in _STEPS[self.track.mode])


@dataclass(frozen=True, slots=True)
class Step:
    """One job of a trial."""

    trial: Trial
    kind: StepKind

    @property
    def key(self) -> str:
        """The job's key."""
        return f"{self.trial.key}/{self.kind}"

    @property
    def title(self) -> str:
        """The job's name for people."""
        track = self.trial.track
        return self.trial.title_of(track.name if track.mode == "direct" else f"{track.name} {self.kind}")

    @property
    def model_id(self) -> str:
        """The model that it asks."""
        judge = self.trial.track.judge
        return judge if self.kind is StepKind.JUDGE and judge is not None else self.trial.agent.model

    @property
    def lane(self) -> str:
        """That model for people: jobs that ask the same one take turns."""
        return self.trial.labels[self.model_id]

    @property
    def before(self) -> tuple[Step, ...]:
        """The steps of the trial whose results it needs."""
        kinds = _STEPS[self.trial.track.mode]
        return tuple(Step(self.trial, kind) for kind in kinds[: kinds.index(self.kind)])

    @property
    def sources(self) -> str:
        """The key of the job that brings the instance's trees to disk."""
        return f"sources/{self.trial.instance.id}"

    @property
    def install(self) -> str:
        """The key of the job that installs the agent's program; "" where there is none to install."""
        return "" if self.trial.agent.own else f"install/{self.trial.agent.id}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        earlier = tuple(step.key for step in self.before)
        if self.kind is StepKind.JUDGE:
            return earlier
        return tuple(filter(None, (self.sources, self.install, *earlier)))


def trials(
    agents: Sequence[AgentConfig],
    tracks: Sequence[TrackConfig],
    instances: Iterable[Instance],
    labels: Mapping[str, str],
) -> tuple[Trial, ...]:
    """List the trials: agents × tracks × instances × attempts; ``labels`` are those of models, by id."""
    return tuple(
        Trial(agent, track, instance, attempt, labels)
        for instance in instances
        for track in tracks
        for agent in agents
        if track.takes(agent.id)
        for attempt in range(1, track.attempts + 1)
    )


def with_needed(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Add the earlier steps of the same trials that ``steps`` need, each before what needs it."""
    return tuple({each.key: each for step in steps for each in (*step.before, step)}.values())
