"""``PatchRun``: an agent run whose output is a patch; that of a run that was stopped is kept for later."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from codetaste.flows.agents.run import AgentRun
from codetaste.harness.patch.extract import ExtractedPatch, extract_patch
from codetaste.harness.run import without_token

if TYPE_CHECKING:
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


@dataclass(slots=True)
class PatchRun(AgentRun):
    """An agent run whose output is a patch; None until it is extracted."""

    patch: ExtractedPatch | None = field(default=None, init=False)

    async def extract(self) -> None:
        """Extract the patch on the host."""
        environment = self.spec.environment
        async with self.services.extraction_limiter:
            patch = await extract_patch(
                self.sandbox,
                self.testbed,
                left_out=() if environment is None else environment.untracked,
                counts=self.counts,
            )
        self.patch = replace(patch, patch=without_token(patch.patch, self.token))

    def counts(self, path: str) -> bool:  # noqa: ARG002 - a subclass decides by it
        """Return whether a new file is a part of the patch."""
        return True


async def store_partial_patch(job: JobContext, extracted: ExtractedPatch) -> None:
    """Record the patch of an attempt that ends without a result.

    Raises:
        JournalError: it cannot be written.
    """
    patch = await job.store_text(extracted.patch.decode("utf-8", "surrogateescape"))
    value: dict[str, Json] = {"patch": patch, "files": extracted.files, "problem": extracted.problem}
    await job.record(_effect_name(job.attempt), {**value, "notes": list(extracted.notes)})


async def load_partial_patch(job: JobContext) -> ExtractedPatch | None:
    """Return the patch of the last earlier attempt that stored one; None where no attempt did."""
    for attempt in range(job.attempt - 1, 0, -1):
        if job.is_recorded(_effect_name(attempt)):
            value: Any = job.recorded(_effect_name(attempt))
            patch = (await job.load_text(value["patch"])).encode("utf-8", "surrogateescape")
            note = f"taken from attempt {attempt}: no budget or time was left for a new attempt"
            return ExtractedPatch(patch, value["files"], value["problem"], (*value["notes"], note))
    return None


def _effect_name(attempt: int) -> str:
    return f"partial-patch/attempt-{attempt}"
