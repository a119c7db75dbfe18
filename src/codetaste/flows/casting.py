"""Whether the agents of a config can be had, and their models paid: every fault, before anything starts."""

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

_SPEAK_ALL = frozenset({"scripted", "replay"})
"""Providers that are no servers: the gateway speaks every protocol for them."""


@dataclass(frozen=True, slots=True)
class Adapters:
    """What says how each agent's program is used, by the agent's id; ``problems``: a line for each fault."""

    by_agent: Mapping[str, Adapter]
    problems: tuple[str, ...]


def adapters_of(
    agents: Iterable[AgentConfig],
    tracks: Iterable[TrackConfig],
    models: Iterable[ModelConfig],
    base_dir: Path,
) -> Adapters:
    """Find what ``agents`` name, whose models are among ``models``; blocks.

    Trials have budgets in US dollars, so that the models of agents and judges must have a price.
    """
    by_id = {model.id: model for model in models}
    adapters: dict[str, Adapter] = {}
    problems: list[str] = []
    asked: list[str] = []
    for agent in agents:
        asked.append(agent.model)
        try:
            if not agent.own:
                adapters[agent.id] = _adapter(agent, by_id[agent.model], base_dir)
        except ConfigError as error:
            problems.extend(_of(agent, problem) for problem in error.problems)
    asked.extend(track.judge for track in tracks if track.judge is not None)
    for name in dict.fromkeys(asked):
        problems.extend(budget_problems(by_id[name]))
    return Adapters(adapters, tuple(problems))


def _of(agent: AgentConfig, problem: str) -> str:
    """Say whose problem it is, which begins with a key of the agent's or with the path of a file."""
    is_path = problem.startswith(("/", "./", "../"))
    return f"agents[{agent.id}]{': ' if is_path else '.'}{problem}"


def _adapter(agent: AgentConfig, model: ModelConfig, base_dir: Path) -> Adapter:
    from codetaste.harness.adapter import load_adapter  # noqa: PLC0415 - only where a program is used

    adapter = load_adapter(agent.harness, base_dir)
    adapter.version(agent.version)
    adapter.options(agent.options)
    if adapter.protocol not in {"none", model.provider} and model.provider not in _SPEAK_ALL:
        raise ConfigError(
            f"model: {agent.harness} speaks the protocol of provider {adapter.protocol!r}, and the model "
            f"{model.id!r} is one of {model.provider!r}"
        )
    return adapter
