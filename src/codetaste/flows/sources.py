"""The job that brings an instance's trees to disk: free, and there for whoever needs them."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.orchestration.job import Job
from codetaste.source.trees import materialise

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import JobContext, Json

_CPU = 0.5  # unpacking and hashing; the other half of the time it waits for disk or network


def sources_job(key: str, instance: Instance, benchmark: Benchmark, cache: Path, budget: Budget) -> Job:
    """Make the job ``key`` that brings R and R∘X* of ``instance`` below ``cache``."""

    async def run(_job: JobContext) -> Json:
        trees = await materialise(benchmark.origin(instance), cache)
        return {"base": trees.base_digest, "golden": trees.golden_digest}

    return Job(
        key,
        run,
        budget,
        fingerprint=digest("sources", instance.commit_hash, instance.golden_commit_hash),
        resources={"cpu": _CPU},
        title=f"sources of {instance.id}",
        free=True,
        for_others=True,
    )


def digest(*parts: str) -> str:
    """Return what stands for ``parts`` in a fingerprint."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
