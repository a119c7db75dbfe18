"""The inputs that decide the environment of an instance, and the prompt that an agent begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.hashing import canonical_json
from codetaste.flows.agents.inputs import agent_inputs
from codetaste.flows.inputs import CODETASTE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.environment.config import EnvironmentConfig
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter

VERSION = 1
"""Increment it when a change of the flow or of the gates changes an environment's result."""
IMAGE_VERSION = 1
"""Increment it when a change of the flow changes a runtime image, or what is known of it."""
SYSTEM_PROMPT, TASK_PROMPT, FEEDBACK_PROMPT = "setup_system", "setup_environment", "setup_feedback"
_KEYS = ("image", "hosts", "registries", "neighbours", "setup_time_limit", "test_time_limit")


def setup_prompt(context: EnvironmentContext) -> str:
    """Return the prompt of the first round."""
    return context.prompts.load(TASK_PROMPT).render(base=describe_base(context.base_image))


def describe_base(image: str) -> str:
    """Return what the prompt says of the base image."""
    return f"It is made from the image {image}; /etc/codetaste/image.json lists the tools and their versions."


def environment_inputs(
    task: EnvironmentTask, source: InputSource, config: EnvironmentConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of an environment; ``adapters`` are those of CLI agents, by agent id.

    How often the agent may be called is none of them: a higher number continues where the rounds ended.
    """
    inputs: dict[str, str] = {}
    if task.agent is not None:
        inputs.update(agent_inputs(task.agent, adapters, source))
        inputs.update(source.of_prompts((SYSTEM_PROMPT, TASK_PROMPT, FEEDBACK_PROMPT)))
        inputs[f"models.{task.model_id}"] = source.models[task.model_id]
        inputs["environment.agent"] = task.agent.id
    own = canonical_json([VERSION, inputs.get(CODETASTE, "")])
    commits = [task.instance.commit_hash, task.instance.golden_commit_hash]
    dumped = config.model_dump(mode="json")
    return {
        **inputs,
        **{f"environment.{name}": canonical_json(dumped[name]) for name in _KEYS},
        CODETASTE: own,
        "benchmark.path": canonical_json(commits),
    }
