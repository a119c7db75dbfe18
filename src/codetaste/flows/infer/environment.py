"""The execution environment that the steps of a trial work in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.environment.images.runtime import RuntimeEnvironment

if TYPE_CHECKING:
    from codetaste.flows.infer.plan import Trial
    from codetaste.orchestration.job import JobContext


def environment_of(trial: Trial, job: JobContext) -> RuntimeEnvironment | None:
    """Return the environment of the trial's instance; None where there is none."""
    value: Any = job.needs.get(trial.image_key) if trial.image_key else None
    return None if value is None else RuntimeEnvironment.from_json(value)
