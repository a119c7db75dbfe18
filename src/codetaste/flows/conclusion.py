"""What trials came to when all jobs have ended: one outcome for each, and its files in their place."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.errors import JournalError
from codetaste.flows.effort import BUDGET, ERROR, TIMEOUT, now
from codetaste.flows.metadata import Ending, inference_metadata, without_plans
from codetaste.flows.outputs import Prediction, fetched, interrupted, left_something, write_prediction
from codetaste.flows.trials import StepKind
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.flows.site import Site
    from codetaste.flows.trials import Step
    from codetaste.orchestration.budget import Budget
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.money import Snapshot
    from codetaste.orchestration.storage import Blobs

_REASONS = {Status.BUDGET_EXCEEDED: BUDGET, Status.TIMEOUT: TIMEOUT}


async def conclude(
    steps: Iterable[Step], outcomes: Mapping[str, Outcome], site: Site, budget: Budget, blobs: Blobs
) -> dict[str, Outcome]:
    """Return the outcome of each trial that ``steps`` were to bring to an end, by its key.

    Its cost is that of all its steps, its value that of its execution. A trial that has used up its money or
    time before the execution could begin ends so, with an empty patch: an outcome, and no failure. One that
    failed and left nothing (its container engine never came back) has a record of that, lest it be missing
    from what is counted later. Files that were removed, or that another config of the same run name has
    written since, are written again.

    Args:
        steps: those of the run.
        outcomes: of all jobs, by key.
        site: what all trials share.
        budget: the flow's, that the trials' lie below.
        blobs: where long texts are kept.

    Raises:
        JournalError: something cannot be read or written; StorageFull among them.
        ExceptionGroup: of such, for the predictions that could not; all others are there.
    """
    concluded: dict[str, Outcome] = {}
    failures: list[JournalError] = []
    for step in steps:
        if step.kind is not StepKind.EXECUTE:
            continue
        trial = step.trial
        money = budget.child(trial.node).snapshot()
        concluded[trial.key] = outcome = await _outcome(step, outcomes, money, site, blobs)
        if outcome.usable and outcome.value is not None:
            try:
                value: Any = outcome.value
                await write_prediction(site.out, trial, await fetched(value, blobs), site)
            except JournalError as error:
                failures.append(error)
        elif outcome.status is Status.FAILED:
            try:
                await _record_failure(step, outcomes, money, site)
            except JournalError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("some predictions could not be written", failures)
    return concluded


async def _outcome(
    step: Step, outcomes: Mapping[str, Outcome], money: Snapshot, site: Site, blobs: Blobs
) -> Outcome:
    trial, last = step.trial, outcomes[step.key]
    chain = [outcomes[each.key] for each in (*step.before, step)]
    resumed = all(each.resumed for each in chain)
    whole = replace(last, key=trial.key, cost=money, resumed=resumed)
    if last.usable or last.status is Status.CANCELLED:
        return whole
    first = next(each for each in chain if not each.usable)
    whole = replace(whole, status=first.status, cause=first.cause, error=first.error)
    began = any(each.attempts for each in chain)
    # What an execution left that outlived its time even in clean-up is more than nothing.
    if first.status not in _REASONS or not began or await interrupted(site.out, trial):
        return replace(whole, traceback=first.traceback)
    return replace(whole, value=await _unfinished(step, outcomes, money, site, blobs))


async def _unfinished(
    step: Step, outcomes: Mapping[str, Outcome], money: Snapshot, site: Site, blobs: Blobs
) -> dict[str, Any]:
    """Return the prediction of a trial whose execution never began."""
    metadata, plans = _told(step, outcomes, money, site)
    return {"patch": await blobs.keep(""), "plans": plans, "metadata": metadata}


async def _record_failure(step: Step, outcomes: Mapping[str, Outcome], money: Snapshot, site: Site) -> None:
    """Write of a trial that failed why it did, with an empty patch, unless more than that is there."""
    if not await left_something(site.out, step.trial):
        metadata, _ = _told(step, outcomes, money, site)
        await write_prediction(site.out, step.trial, Prediction(b"", metadata), site)


def _told(
    step: Step, outcomes: Mapping[str, Outcome], money: Snapshot, site: Site
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the metadata of a trial without an execution, and the digests of its plans."""
    values: dict[str, Any] = {each.kind.value: outcomes[each.key].value for each in step.before}
    told = {kind: without_plans(value) for kind, value in values.items() if value is not None}
    first = next(outcomes[each.key] for each in (*step.before, step) if not outcomes[each.key].usable)
    ending = Ending(_REASONS.get(first.status, ERROR), now(), first.error)
    plans = (values.get(StepKind.PLAN) or {}).get("plans", [])
    return inference_metadata(step.trial, site, told, money, ending), plans
