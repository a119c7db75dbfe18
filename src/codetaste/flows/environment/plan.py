"""The environments that a config selects: one job for each instance, and one for its runtime image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.flows.job_keys import environment_key, image_key, sources_key
from codetaste.orchestration.budget.cost import BudgetLimits

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.benchmark.instance import Instance
    from codetaste.environment.config import EnvironmentConfig
    from codetaste.harness.config import AgentConfig


@dataclass(frozen=True, slots=True)
class EnvironmentTask:
    """The environment of one instance.

    Attributes:
        instance: the instance.
        agent: sets it up if nothing else works; None for no agent.
        model_label: display name of the agent's model, "" without agent.
        limits: of the agent.
        proves: whether this run proves the environment; otherwise the benchmark's own is used.
        builds: whether its runtime image is built if there is none yet.
    """

    instance: Instance
    agent: AgentConfig | None = None
    model_label: str = ""
    limits: BudgetLimits = BudgetLimits()  # noqa: RUF009 - it is frozen
    proves: bool = True
    builds: bool = True

    @property
    def key(self) -> str:
        """The key of the job that proves the environment."""
        return environment_key(self.instance)

    @property
    def image_key(self) -> str:
        """The key of the job that makes its runtime image."""
        return image_key(self.instance)

    @property
    def title(self) -> str:
        """The display name."""
        return f"{self.instance.id} environment"

    @property
    def repository(self) -> str:
        """The resource of which environments of one repository take all: each learns from those before it."""
        return f"environments of {self.instance.owner}/{self.instance.repo}".lower()

    @property
    def model_id(self) -> str:
        """The id of the agent's model, "" without agent."""
        return "" if self.agent is None else self.agent.model

    @property
    def install_key(self) -> str:
        """The key of the job that installs the CLI agent; "" for the own agent, and for none."""
        return "" if self.agent is None or self.agent.uses_own_loop else f"install/{self.agent.id}"

    @property
    def needs(self) -> tuple[str, ...]:
        """The keys of the jobs that must have a result first."""
        return tuple(filter(None, (sources_key(self.instance), self.install_key)))


def plan_environments(
    config: EnvironmentConfig, agent: AgentConfig | None, label: str, instances: Iterable[Instance]
) -> tuple[EnvironmentTask, ...]:
    """List the environments: one for each of ``instances``; ``label`` is the name of the agent's model."""
    limits = BudgetLimits(usd=config.budget_usd, working_s=config.time_limit) if agent else BudgetLimits()
    return tuple(EnvironmentTask(instance, agent, label, limits) for instance in instances)
