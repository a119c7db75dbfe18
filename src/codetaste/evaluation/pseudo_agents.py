"""The two pseudo agents, which call no model: golden submits the human's patch X*, null an empty patch.

They mark both ends of the metrics and show whether an instance is valid: golden's IFR is 1, null's is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.source.patch.diff import diff_trees
from codetaste.source.patch.parse import read_patch

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.source.checkout import Trees

NULL_PATCH = b"\n"
"""The patch that the published null agent submits."""
PSEUDO_AGENTS = (GOLDEN, NULL)
_PROVIDERS = {GOLDEN: "golden", NULL: "null"}


async def golden_patch(benchmark: Benchmark, instance: Instance, trees: Trees, scratch: Path) -> bytes:
    """Return X* as a patch: the benchmark's ``golden.diff``, or git's diff of R and R∘X*.

    Args:
        benchmark: the instance's benchmark.
        instance: the instance.
        trees: R and R∘X*.
        scratch: an existing folder for git's objects, left unchanged.

    Raises:
        SourceError: the benchmark's file cannot be read, or git cannot compare the trees.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    published = benchmark.golden_path(instance)
    if await to_thread.run_sync(published.is_file):
        return await to_thread.run_sync(read_patch, published)
    return await diff_trees(trees.base, trees.golden, scratch)


def pseudo_agent_config(agent: str) -> dict[str, Any]:
    """Return ``agent_config.json`` of a pseudo agent, as published."""
    provider = _PROVIDERS[agent]
    return {
        "id": agent,
        "agent": {"name": agent, "version": "0.0.0", "provider": provider, "additional": None},
        "model": {"name": f"{provider}_model", "provider": provider, "additional": None},
    }
