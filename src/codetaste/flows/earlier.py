"""The partial patch of an interrupted attempt, stored for the next attempt.

A CLI agent starts again after Ctrl-C or a lost sandbox. If its budget or time was used up by then, the next
attempt cannot do anything, and the partial patch of the earlier attempt is the trial's result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import JournalError
from codetaste.harness.harvest import ExtractedPatch

if TYPE_CHECKING:
    from codetaste.orchestration.job import JobContext, Json


async def store_partial_patch(job: JobContext, extracted: ExtractedPatch) -> None:
    """Store the patch of this attempt in the journal.

    Raises:
        JournalError: the journal cannot be written; StorageFull is one of these.
    """

    async def stored() -> Json:
        patch = await job.store_text(extracted.patch.decode("utf-8", "surrogateescape"))
        return {
            "patch": patch,
            "files": extracted.files,
            "problem": extracted.problem,
            "notes": list(extracted.notes),
        }

    await job.effect(_effect_name(job.attempt), stored)


async def load_partial_patch(job: JobContext) -> ExtractedPatch | None:
    """Return the patch of the last earlier attempt that stored one; None where no attempt did.

    Raises:
        JournalError: the journal cannot be read.
    """
    for attempt in range(job.attempt - 1, 0, -1):
        if job.is_recorded(_effect_name(attempt)):
            value: Any = await job.effect(_effect_name(attempt), _must_be_recorded)
            patch = (await job.load_text(value["patch"])).encode("utf-8", "surrogateescape")
            note = f"taken from attempt {attempt}: no budget or time was left for a new attempt"
            return ExtractedPatch(patch, value["files"], value["problem"], (*value["notes"], note))
    return None


def _effect_name(attempt: int) -> str:
    return f"left/attempt-{attempt}"


async def _must_be_recorded() -> Json:
    raise JournalError("internal error: a recorded effect was run again")
