"""The inputs that decide a description; an instructed one that the same run makes counts by its result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.benchmark.layout import Track
from codetaste.core.hashing import canonical_json
from codetaste.flows.describe.change import read_change
from codetaste.flows.inputs import CODETASTE

if TYPE_CHECKING:
    from codetaste.flows.describe.plan import DescribeConfig, DescriptionTask
    from codetaste.flows.inputs import Inputs, InputSource

VERSION = 1
"""Increment it when a change of this flow changes a description that the same prompts would give."""
INSTRUCTED_PROMPTS = ("describe_instructed_system", "describe_instructed", "describe_again")
OPEN_PROMPTS = ("describe_open_system", "describe_open", "describe_again")


def description_inputs(task: DescriptionTask, source: InputSource, config: DescribeConfig) -> Inputs:
    """Return the inputs of a description.

    Raises:
        ConfigError: ``change.json`` of the instance cannot be read.
    """
    instance, benchmark = task.instance, source.benchmark
    facts = [instance.commit_hash, instance.golden_commit_hash, instance.language]
    limits = {"describe.max_output_tokens": str(config.max_output_tokens)}
    if task.track is Track.INSTRUCTED:
        facts.append(read_change(benchmark, instance).model_dump_json())
        limits["describe.diff_chars"] = str(config.diff_chars)
        prompts = INSTRUCTED_PROMPTS
    else:
        facts.append(benchmark.known_description(instance))
        limits["describe.max_open_chars"] = str(config.max_open_chars)
        prompts = OPEN_PROMPTS
    return {
        CODETASTE: str(VERSION),
        "benchmark.path": canonical_json(facts),
        "reviews": canonical_json([[each.digest, each.comment] for each in task.rejections]),
        **limits,
        f"models.{task.model_id}": source.models[task.model_id],
        **source.of_prompts(prompts),
    }
