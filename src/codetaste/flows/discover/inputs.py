"""The inputs that decide the result of a discovery pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.hashing import canonical_json
from codetaste.flows.inputs import CODETASTE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.agent.tool import Tool
    from codetaste.flows.discover.plan import DiscoverConfig, DiscoveryPass
    from codetaste.flows.inputs import Inputs, InputSource

VERSION = 1
"""Increment it when a change of this flow changes the result of a pass with the same prompts and tools."""
PROMPTS = ("discover_system", "discover_task")
ENGINE_INPUT = "rules.opengrep"
"""The version of the rule engine, which is known only once the engine is found."""


def pass_inputs(
    each: DiscoveryPass, source: InputSource, config: DiscoverConfig, tools: Iterable[Tool]
) -> Inputs:
    """Return the inputs of a pass but ``ENGINE_INPUT``."""
    instance, benchmark = each.instance, source.benchmark
    facts = [instance.commit_hash, instance.language, benchmark.known_description(instance)]
    return {
        CODETASTE: str(VERSION),
        "benchmark.path": canonical_json([*facts, benchmark.ignore_text()]),
        "discover.max_output_tokens": str(config.max_output_tokens),
        "discover.tools": canonical_json([f"{tool.spec.name} {tool.digest}" for tool in tools]),
        f"models.{each.model_id}": source.models[each.model_id],
        **source.of_prompts(PROMPTS),
    }
