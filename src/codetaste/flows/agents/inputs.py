"""The inputs of an agent's runs besides its task and its model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.hashing import canonical_json
from codetaste.flows.inputs import CODETASTE
from codetaste.harness.config import DEFAULT_MAX_OUTPUT_TOKENS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter
    from codetaste.harness.config import AgentConfig
    from codetaste.sandbox.config import SandboxConfig

OWN_LOOP_PROMPT = "code_system"


def agent_inputs(agent: AgentConfig, adapters: Mapping[str, Adapter], source: InputSource) -> Inputs:
    """Return the inputs that the agent adds; ``adapters`` are those of CLI agents, by agent id."""
    key = f"agents.{agent.id}"
    if not agent.uses_own_loop:
        adapter = adapters[agent.id]
        return {
            f"{key}.harness": adapter.digest,
            f"{key}.version": adapter.choose_version(agent.version),
            f"{key}.options": canonical_json(adapter.resolve_options(agent.options)),
            f"{key}.env": canonical_json(dict(agent.env)),
        }
    from codetaste.agent.code_tools import CODE_TOOLS  # noqa: PLC0415 - not for a dry run of CLI agents

    return {
        CODETASTE: canonical_json([f"{tool.spec.name} {tool.digest}" for tool in CODE_TOOLS]),
        f"{key}.max_output_tokens": str(agent.max_output_tokens or DEFAULT_MAX_OUTPUT_TOKENS),
        f"{key}.options": canonical_json(dict(agent.options)),
        **source.of_prompts([OWN_LOOP_PROMPT]),
    }


def sandbox_inputs(config: SandboxConfig) -> Inputs:
    """Return the config values that determine a sandbox's content.

    With the engine "auto", the engine that is chosen on a host does not make results differ.
    """
    return {"sandbox.engine": str(config.engine), "sandbox.image": str(config.image)}
