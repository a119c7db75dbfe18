"""Evaluation: each prediction is applied to R, scanned and counted, a job each (CodeTaste §4.1, Figure 4).

A job costs no money and asks no model. Whatever becomes of a patch is a result with a status: one that does
not apply is scored as that, and fails nobody's run. A trial without a prediction has none to be scored.
"""

from __future__ import annotations

from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.evaluation import score
from codetaste.evaluation.evaluate import Status
from codetaste.flows.effort import now
from codetaste.flows.scored import Materials, recorded_for, scored, write_scored
from codetaste.flows.sources import digest, sources_job
from codetaste.llm.codec import canonical
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.flows.laboratory import Laboratory
    from codetaste.flows.scorings import Scoring
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import JobContext, Json

VERSION = 1
"""Raise it when the flow changes what a scoring comes to; the formulas have a version of their own."""
_AT_ONCE = 4
"""However many CPUs there are: agents and their gateway live in the same process, and come first."""


async def jobs(scorings: Sequence[Scoring], lab: Laboratory, budget: Budget, cpus: int) -> list[Job]:
    """Make the jobs of ``scorings``, with those that bring sources, below ``budget``; there are ``cpus``."""
    fingerprints = await to_thread.run_sync(_fingerprints, scorings, lab)
    made: dict[str, Job] = {}
    for scoring in scorings:
        if scoring.sources not in made:
            made[scoring.sources] = sources_job(
                scoring.sources, scoring.instance, lab.benchmark, lab.cache, budget
            )
        made[scoring.key] = _job(scoring, lab, fingerprints[scoring.key], budget, max(1.0, cpus / _AT_ONCE))
    return list(made.values())


def _job(scoring: Scoring, lab: Laboratory, fingerprint: str, budget: Budget, cpu: float) -> Job:
    async def run(job: JobContext) -> Json:
        return await _score(scoring, lab, job)

    return Job(
        scoring.key,
        run,
        budget,
        fingerprint=fingerprint,
        needs=scoring.needs,
        resources={"cpu": cpu},
        title=scoring.title,
        free=True,
    )


def _fingerprints(scorings: Sequence[Scoring], lab: Laboratory) -> dict[str, str]:
    """Stand for all that decides each result, but for what other jobs leave: the patch, and found rules."""
    common = (str(VERSION), str(score.VERSION), lab.engine_version, lab.ignore, lab.config.exclusions)
    stands: dict[str, str] = {}
    for scoring in scorings:
        yardstick, instance = lab.yardsticks[scoring.instance.id], scoring.instance
        tests, _ = recorded_for(scoring, lab)
        measured = canonical([tests and list(astuple(tests)), repr(yardstick.baseline), yardstick.problem])
        stands[scoring.key] = digest(
            *common, instance.commit_hash, instance.golden_commit_hash, yardstick.digest, measured
        )
    return stands


async def _score(scoring: Scoring, lab: Laboratory, job: JobContext) -> Json:
    materials = Materials(job.needs, job.fetch, now())
    result = await scored(scoring, lab, materials)
    with job.cleaning_up():
        value = await to_thread.run_sync(write_scored, scoring, lab, result, materials.timestamp)
    for note in result.evaluation.notes:
        job.note(note)
    return value


def found(value: Any) -> str:  # noqa: ANN401 - a job's value
    """Say what a prediction is worth, from the value of its scoring: "" where there is none."""
    return "" if value is None else str(value["said"])


def routine(value: Any) -> bool:  # noqa: ANN401 - a job's value
    """Whether a scoring came to a score, and that of a pseudo agent to the one it must have."""
    return value is not None and value["status"] == Status.SCORED and value["sound"] is not False
