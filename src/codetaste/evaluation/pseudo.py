"""Two agents that ask no model: one answers with the human's patch X*, the other with nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.evaluation.baseline import GOLDEN, NULL

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.source.trees import Trees

NULL_PATCH = b"\n"
"""What the published null agent submits."""
PSEUDO_AGENTS = (GOLDEN, NULL)


async def golden_patch(benchmark: Benchmark, instance: Instance, trees: Trees, scratch: Path) -> bytes:
    """Return X* as a patch: the benchmark's ``golden.diff``, or what git says of R and R∘X*.

    Args:
        benchmark: where the instance is from.
        instance: whose patch.
        trees: R and R∘X*.
        scratch: a folder for git's objects, left empty.

    Raises:
        ConfigError: the benchmark's file cannot be read.
        SourceError: git cannot compare the trees.
    """
    raise NotImplementedError


def pseudo_config(agent: str) -> dict[str, Any]:
    """Return ``agent_config.json`` of a pseudo agent, as published."""
    raise NotImplementedError
