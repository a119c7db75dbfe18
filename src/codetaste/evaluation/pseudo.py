"""Two agents that ask no model: one answers with the human's patch X*, the other with nothing.

They say what the metrics come to at both ends, and whether an instance is sound: golden's IFR is 1, null's 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.evaluation.records import GOLDEN, NULL
from codetaste.source.patch import read_patch
from codetaste.source.tree_diff import tree_diff

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.source.trees import Trees

NULL_PATCH = b"\n"
"""What the published null agent submits."""
PSEUDO_AGENTS = (GOLDEN, NULL)
_PROVIDERS = {GOLDEN: "golden", NULL: "null"}


async def golden_patch(benchmark: Benchmark, instance: Instance, trees: Trees, scratch: Path) -> bytes:
    """Return X* as a patch: the benchmark's ``golden.diff``, or what git says of R and R∘X*.

    Args:
        benchmark: where the instance is from.
        instance: whose patch.
        trees: R and R∘X*.
        scratch: an existing folder for git's objects, left as it is.

    Raises:
        SourceError: the benchmark's file cannot be read, or git cannot compare the trees.
        StorageFull: no space left.
        ToolMissing: there is no git.
    """
    published = benchmark.golden_path(instance)
    if await to_thread.run_sync(published.is_file):
        return await to_thread.run_sync(read_patch, published)
    return await tree_diff(trees.base, trees.golden, scratch)


def pseudo_config(agent: str) -> dict[str, Any]:
    """Return ``agent_config.json`` of a pseudo agent, as published."""
    provider = _PROVIDERS[agent]
    return {
        "id": agent,
        "agent": {"name": agent, "version": "0.0.0", "provider": provider, "additional": None},
        "model": {"name": f"{provider}_model", "provider": provider, "additional": None},
    }
