"""The patch of an attempt that had no end of its own, kept for the next one.

A program begins anew after a Ctrl-C or a lost box. Where its money or time was used up by then, the next
attempt cannot do anything, and what the trial came to is what the earlier one had left.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import JournalError
from codetaste.harness.harvest import Harvest

if TYPE_CHECKING:
    from codetaste.orchestration.job import JobContext, Json


async def remember(job: JobContext, taken: Harvest) -> None:
    """Keep what this attempt has left, in the journal.

    Raises:
        JournalError: it cannot be written; StorageFull among them.
    """

    async def kept() -> Json:
        patch = await job.keep(taken.patch.decode("utf-8", "surrogateescape"))
        return {"patch": patch, "files": taken.files, "problem": taken.problem, "notes": list(taken.notes)}

    await job.effect(_name(job.attempt), kept)


async def left_before(job: JobContext) -> Harvest | None:
    """Return what the last attempt before this one has left, None where none left anything.

    Raises:
        JournalError: it cannot be read.
    """
    for attempt in range(job.attempt - 1, 0, -1):
        if job.recorded(_name(attempt)):
            value: Any = await job.effect(_name(attempt), _never)
            patch = (await job.fetch(value["patch"])).encode("utf-8", "surrogateescape")
            note = f"taken from attempt {attempt}: nothing was left to begin anew with"
            return Harvest(patch, value["files"], value["problem"], (*value["notes"], note))
    return None


def _name(attempt: int) -> str:
    return f"left/attempt-{attempt}"


async def _never() -> Json:
    raise JournalError("a recorded effect was to be done again")
