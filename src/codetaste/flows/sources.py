"""The job that checks out an instance's trees for the jobs that need them; it costs no money."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.orchestration.job import Job
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json

_CPU = 0.5  # for unpacking and hashing; half of the time the job waits for disk or network


def sources_job(key: str, instance: Instance, benchmark: Benchmark, cache: Path, budget: Budget) -> Job:
    """Return the job ``key`` that checks out R and R∘X* of ``instance`` into ``cache``."""

    async def run(_job: JobContext) -> Json:
        trees = await checkout_trees(benchmark.origin(instance), cache)
        return {"base": trees.base_digest, "golden": trees.golden_digest}

    return Job(
        key,
        run,
        budget,
        fingerprint=digest_parts("sources", instance.commit_hash, instance.golden_commit_hash),
        resources={"cpu": _CPU},
        title=f"sources of {instance.id}",
        costs_nothing=True,
        prerequisite_only=True,
    )


def digest_parts(*parts: str) -> str:
    """Return the SHA-256 of ``parts``, for use in a fingerprint."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()
