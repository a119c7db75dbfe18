"""The runtime image of an instance: found in the engine, or built from scripts that passed the gates."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.flows.environment.context import EnvironmentContext
    from codetaste.flows.environment.plan import EnvironmentTask
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


async def make_runtime_image(task: EnvironmentTask, context: EnvironmentContext, job: JobContext) -> Json:
    """Return the ``RuntimeEnvironment`` of an instance as the job's value, None where there is none.

    Raises:
        SandboxError: the image could not be built.
    """
    raise NotImplementedError
