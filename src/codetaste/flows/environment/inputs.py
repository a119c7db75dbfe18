"""The inputs that decide the environment of an instance, and the prompt that an agent begins with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import (
    ENVIRONMENT_FILE,
    INSTANCE_METADATA_FILE,
    environment_folder,
    scripts_folder,
)
from codetaste.core.hashing import canonical_json
from codetaste.environment.scripts import read_scripts
from codetaste.errors import ConfigError
from codetaste.flows.agents.inputs import agent_inputs
from codetaste.flows.inputs import CODETASTE
from codetaste.flows.sources import digest_parts, file_digest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.environment.config import EnvironmentConfig
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.flows.inputs import Inputs, InputSource
    from codetaste.harness.adapter import Adapter

VERSION = 2
"""Increment it when a change of the flow or of the gates changes an environment's result."""
IMAGE_VERSION = 4
"""Increment it when a change of the flow changes a runtime image, or what is known of it."""
SYSTEM_PROMPT, TASK_PROMPT, FEEDBACK_PROMPT = "setup_system", "setup_environment", "setup_feedback"
_RECORD_FILES = (INSTANCE_METADATA_FILE, ENVIRONMENT_FILE)
_KEYS = ("image", "hosts", "registries", "neighbours", "setup_time_limit", "test_time_limit")


def setup_prompt(context: EnvironmentContext) -> str:
    """Return the prompt of the first round."""
    return context.prompts.load(TASK_PROMPT).render(base=describe_base(context.base_image))


def describe_base(image: str) -> str:
    """Return what the prompt says of the base image."""
    return f"It is made from the image {image}; /etc/codetaste/image.json lists the tools and their versions."


def existing_environment_digest(benchmark: Benchmark, instance: Instance) -> str:
    """Return a digest of the scripts and metadata that the benchmark has of an environment; blocking."""
    folder = scripts_folder(benchmark.root, instance)
    try:
        scripts = read_scripts(folder).digest if folder.is_dir() else ""
    except ConfigError as error:
        scripts = str(error)  # the job says so
    record = environment_folder(benchmark.root, instance)
    return digest_parts(scripts, *(file_digest(record / name) for name in _RECORD_FILES))


def environment_inputs(
    task: EnvironmentTask, source: InputSource, config: EnvironmentConfig, adapters: Mapping[str, Adapter]
) -> Inputs:
    """Return the inputs of an environment; blocking. ``adapters`` are those of CLI agents, by agent id.

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
        "benchmark.instance_images": existing_environment_digest(source.benchmark, task.instance),
    }
