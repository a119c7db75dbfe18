"""The context that all trials of a run share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from codetaste.core.units import format_exact_usd
from codetaste.flows.agents.runners import CliAgentRunner
from codetaste.flows.inputs import InputSource

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.flows.agents.run import AgentRunner, AgentServices
    from codetaste.flows.context import ModelSet
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.llm.prompts import Prompts


@dataclass(frozen=True, slots=True)
class InferenceContext:
    """The source of the tasks, the models, the prompts, and what the runs of agents share."""

    benchmark: Benchmark
    models: ModelSet
    prompts: Prompts
    agents: AgentServices

    @property
    def out(self) -> Path:
        """The run's folder."""
        return self.agents.out

    @property
    def source(self) -> InputSource:
        """What the inputs of steps are taken from."""
        return InputSource(self.benchmark, self.prompts, self.models.fingerprints)

    @property
    def adapters(self) -> dict[str, Adapter]:
        """The adapters of the CLI agents, by agent id."""
        runners = self.agents.runners.items()
        return {name: each.adapter for name, each in runners if isinstance(each, CliAgentRunner)}

    def runner(self, agent: AgentConfig) -> AgentRunner:
        """Return how ``agent`` is run."""
        return self.agents.runners[agent.id]

    def agent_config(self, agent: AgentConfig) -> dict[str, Any]:
        """Return ``agent_config.json`` in the format of the published harness."""
        model = self.models.configs[agent.model]
        limits = {"budget_usd": format_exact_usd(agent.budget_usd), "time_limit_s": agent.time_limit}
        additional = {**limits, "max_turns": agent.max_turns, "options": agent.options}
        return {
            "id": agent.id,
            "agent": {**self.runner(agent).published_name, "additional": additional},
            "model": {
                "name": model.model,
                "provider": model.provider,
                "additional": {"id": model.id, "options": model.options},
            },
        }
