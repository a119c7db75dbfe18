"""Resolve the agents of a config to adapters and check their models; all problems are reported together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.llm.pricing import budget_problems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from codetaste.flows.trials import TrackConfig
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.llm.config import ModelConfig

_LOCAL_PROVIDERS = frozenset({"scripted", "replay"})
"""Providers without a server: the gateway supports every protocol for them."""


@dataclass(frozen=True, slots=True)
class ResolvedAgents:
    """The adapters of CLI agents by agent id, and one line for each problem."""

    adapters: Mapping[str, Adapter]
    problems: tuple[str, ...]


def resolve_agents(
    agents: Iterable[AgentConfig],
    tracks: Iterable[TrackConfig],
    models: Iterable[ModelConfig],
    base_dir: Path,
) -> ResolvedAgents:
    """Load the adapters that ``agents`` name; the agents' models are among ``models``.

    Trials have budgets in US dollars, so the models of agents and judges must have a price.
    """
    by_id = {model.id: model for model in models}
    adapters: dict[str, Adapter] = {}
    problems: list[str] = []
    model_ids: list[str] = []
    for agent in agents:
        model_ids.append(agent.model)
        try:
            if not agent.uses_own_loop:
                adapters[agent.id] = _load_checked_adapter(agent, by_id[agent.model], base_dir)
        except ConfigError as error:
            problems.extend(_with_agent(agent, problem) for problem in error.problems)
    model_ids.extend(track.judge for track in tracks if track.judge is not None)
    for name in dict.fromkeys(model_ids):
        problems.extend(budget_problems(by_id[name]))
    return ResolvedAgents(adapters, tuple(problems))


def _with_agent(agent: AgentConfig, problem: str) -> str:
    """Prefix a problem, which begins with a config key or a file path, with the agent it concerns."""
    is_path = problem.startswith(("/", "./", "../"))
    return f"agents[{agent.id}]{': ' if is_path else '.'}{problem}"


def _load_checked_adapter(agent: AgentConfig, model: ModelConfig, base_dir: Path) -> Adapter:
    from codetaste.harness.adapter import load_adapter  # noqa: PLC0415 - only where a CLI agent is used

    adapter = load_adapter(agent.harness, base_dir)
    adapter.choose_version(agent.version)
    adapter.resolve_options(agent.options)
    if adapter.protocol not in {"none", model.provider} and model.provider not in _LOCAL_PROVIDERS:
        raise ConfigError(
            f"model: {agent.harness} speaks the protocol of provider {adapter.protocol!r}, but the "
            f"model {model.id!r} has the provider {model.provider!r}"
        )
    return adapter
