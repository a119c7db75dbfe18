"""The inputs that decide the answer of a trial, by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from codetaste.core.hashing import canonical_json
from codetaste.flows.agents.inputs import agent_inputs, sandbox_inputs
from codetaste.flows.inputs import CODETASTE
from codetaste.swe_refactor.answers.prompt import FEEDBACK_PROMPT, TEMPLATES
from codetaste.swe_refactor.config import StrategyKind
from codetaste.swe_refactor.examples.example import RERANK_PROMPT
from codetaste.swe_refactor.trials.agent.prompt import AGENT_PROMPT
from codetaste.swe_refactor.trials.pair.inputs import pair_inputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter
    from codetaste.sandbox.config import SandboxConfig
    from codetaste.swe_refactor.config import StrategyConfig
    from codetaste.swe_refactor.trials.plan import StrategyTrial

_VERSION = "1"
"""Increment it when a change makes other answers of the same replies."""
_NOT_INPUTS = {"name", "models", "agents", "attempts", "budget_usd", "time_limit"}
"""Keys of a strategy that do not decide an answer."""


def trial_inputs(
    trial: StrategyTrial, source: InputSource, sandbox: SandboxConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of the answer of a trial."""
    strategy = trial.strategy
    inputs: dict[str, str] = {
        CODETASTE: _VERSION,
        "instance": trial.digest,
        f"models.{trial.model_id}": source.models[trial.model_id],
        f"strategies.{strategy.title}": _settings(strategy),
        **source.of_prompts([TEMPLATES[trial.instance.type] if trial.agent is None else AGENT_PROMPT]),
    }
    if strategy.tries > 1:
        inputs |= source.of_prompts([FEEDBACK_PROMPT])
    if strategy.retrieval is not None:
        if strategy.retrieval.rerank is not None and strategy.retrieval.rerank.by == "model":
            inputs |= source.of_prompts([RERANK_PROMPT])
        inputs |= {f"models.{name}": source.models[name] for _, name in strategy.retrieval.models()}
    if strategy.reviewer is not None:
        inputs[f"models.{strategy.reviewer}"] = source.models[strategy.reviewer]
    if strategy.kind is StrategyKind.MULTI_AGENT:
        inputs |= pair_inputs(source)
    if trial.agent is not None:
        of_agent = agent_inputs(trial.agent, adapters, source)
        versions = canonical_json([_VERSION, of_agent.get(CODETASTE, "")])
        inputs |= {**of_agent, CODETASTE: versions, **sandbox_inputs(sandbox)}
    return inputs


def _settings(strategy: StrategyConfig) -> str:
    values = json.loads(strategy.model_dump_json(exclude=_NOT_INPUTS))
    if strategy.kind is not StrategyKind.MULTI_AGENT:
        values.pop("max_turns")
    return canonical_json(values)
