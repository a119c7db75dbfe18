"""What scorings came to when all jobs have ended: one outcome for each, and its files in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.errors import CodetasteError, JournalError
from codetaste.flows.effort import now
from codetaste.flows.scored import Materials, holds, scored, scored_folder, write_scored
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.flows.laboratory import Laboratory
    from codetaste.flows.scorings import Scoring
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.storage import Blobs


async def conclude_scores(
    scorings: Sequence[Scoring],
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    lab: Laboratory,
    blobs: Blobs,
) -> dict[str, Outcome]:
    """Return the outcome of each scoring, by its key.

    A trial that has used up its money or time before its execution could begin has an empty patch, which is
    scored here. Files that were removed, or that another config of the same run name has written since, are
    made again: they are too large to be kept twice.

    Args:
        scorings: those of the run.
        outcomes: of all jobs, by key.
        trials: what the trials came to, by key.
        lab: what all scorings share.
        blobs: where long texts are kept.

    Raises:
        JournalError: something cannot be read or written; StorageFull among them.
    """
    concluded: dict[str, Outcome] = {}
    for scoring in scorings:
        outcome = outcomes[scoring.key]
        values = {need: outcomes[need].value for need in scoring.needs}
        if scoring.execution is not None:
            values[scoring.execution.key] = trials[scoring.execution.trial.key].value
        if await _to_be_done(scoring, outcome, outcomes, trials, lab):
            value: Any = outcome.value
            at = value["timestamp"] if outcome.usable else now()
            materials = Materials(values, blobs.fetch, at)
            outcome = await _done(scoring, lab, materials, outcome)
        concluded[scoring.key] = outcome
    return concluded


async def _to_be_done(
    scoring: Scoring,
    outcome: Outcome,
    outcomes: Mapping[str, Outcome],
    trials: Mapping[str, Outcome],
    lab: Laboratory,
) -> bool:
    if outcome.usable:
        value: Any = outcome.value
        folder = scored_folder(lab.out, scoring)
        return outcome.resumed and not await to_thread.run_sync(holds, folder, value["files"])
    if outcome.status is not Status.SKIPPED or scoring.execution is None:
        return False
    trial = trials[scoring.execution.trial.key]
    others = (outcomes[need] for need in scoring.needs if need != scoring.execution.key)
    return trial.usable and trial.value is not None and all(other.usable for other in others)


async def _done(scoring: Scoring, lab: Laboratory, materials: Materials, outcome: Outcome) -> Outcome:
    try:
        result = await scored(scoring, lab, materials)
        value = await to_thread.run_sync(write_scored, scoring, lab, result, materials.timestamp)
    except JournalError:
        raise
    except CodetasteError as error:
        return replace(outcome, status=Status.FAILED, value=None, cause=error.cause, error=str(error))
    return replace(outcome, status=Status.DONE, value=value, cause=None, error="")
