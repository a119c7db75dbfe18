"""The job that checks out an instance's trees for the jobs that need them; it costs no money."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from codetaste.core.hashing import file_sha256
from codetaste.flows.job_keys import sources_key
from codetaste.orchestration.job import Job
from codetaste.source.checkout import checkout_trees

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.benchmark import Benchmark
    from codetaste.benchmark.instance import Instance
    from codetaste.orchestration.budget.cost import BudgetPath
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json

SOURCES = "sources"
"""The kind of the job."""
_CPU = 0.5  # for unpacking and hashing; half of the time the job waits for disk or network


def sources_handler(benchmark: Benchmark, cache: Path) -> Handler:
    """Return the handler that checks out R and R∘X* of an instance of ``benchmark`` into ``cache``."""

    async def run(job: Job, _context: JobContext) -> Json:
        trees = await checkout_trees(benchmark.origin(job.parameters), cache)
        return {"base": trees.base_digest, "golden": trees.golden_digest}

    return run


def sources_job(instance: Instance, budget: BudgetPath) -> Job:
    """Return the job that checks out the trees of ``instance``."""
    return Job(
        sources_key(instance),
        SOURCES,
        budget,
        fingerprint=digest_parts("sources", instance.commit_hash, instance.golden_commit_hash),
        parameters=instance,
        resources={"cpu": _CPU},
        title=f"sources of {instance.id}",
        costs_nothing=True,
        prerequisite_only=True,
    )


def digest_parts(*parts: str) -> str:
    """Return the SHA-256 of ``parts``, for use in a fingerprint."""
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file; "" where it cannot be read."""
    try:
        return file_sha256(path)
    except OSError:
        return ""
