"""Outcomes of trials after all jobs have ended, and the files of each trial."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import FinishReason
from codetaste.errors import JournalError
from codetaste.flows.agents.result import utc_now
from codetaste.flows.infer.outputs import (
    Prediction,
    TrialEnd,
    has_outcome,
    inference_metadata,
    is_partial,
    load_prediction,
    without_plans,
    write_prediction,
)
from codetaste.flows.infer.plan import StepKind
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.flows.agents.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs

_REASONS = {Status.BUDGET_EXCEEDED: FinishReason.BUDGET_EXCEEDED, Status.TIMEOUT: FinishReason.TIMEOUT}


async def finish_trials(
    steps: Iterable[Step],
    outcomes: Mapping[str, Outcome],
    context: InferenceContext,
    budget: Budget,
    blobs: Blobs,
) -> dict[str, Outcome]:
    """Return the outcome of each trial whose execute step is among ``steps``, by trial key.

    A trial costs what all its steps cost, and its value is that of its execute step. A trial that used up its
    budget or time before the execute step began ends with an empty patch: that is an outcome, not a failure.
    A trial that failed without a patch (for example because its container engine never came back) gets a
    record of the failure, so that later counts include it. Files that were removed, or overwritten by another
    config with the same run name, are written again.

    Args:
        steps: the steps of the run.
        outcomes: the outcomes of all jobs, by key.
        context: the context that all trials share.
        budget: the flow's budget, the parent of the trials' budgets.
        blobs: the store of long texts.

    Raises:
        JournalError: a file cannot be read or written; StorageFull is one of these.
        ExceptionGroup: JournalErrors of the predictions that could not be written; all others are written.
    """
    trials: dict[str, Outcome] = {}
    failures: list[JournalError] = []
    for step in steps:
        if step.kind is not StepKind.EXECUTE:
            continue
        trial = step.trial
        money = budget.child(trial.budget_name).snapshot()
        trials[trial.key] = outcome = await _outcome(step, outcomes, money, context, blobs)
        if outcome.usable and outcome.value is not None:
            try:
                value: Any = outcome.value
                await write_prediction(context.out, trial, await load_prediction(value, blobs), context)
            except JournalError as error:
                failures.append(error)
        elif outcome.status is Status.FAILED:
            try:
                await _record_failure(step, outcomes, money, context)
            except JournalError as error:
                failures.append(error)
    if failures:
        raise ExceptionGroup("some predictions could not be written", failures)
    return trials


async def _outcome(
    step: Step,
    outcomes: Mapping[str, Outcome],
    money: BudgetSnapshot,
    context: InferenceContext,
    blobs: Blobs,
) -> Outcome:
    trial, last = step.trial, outcomes[step.key]
    chain = [outcomes[each.key] for each in (*step.previous_steps, step)]
    resumed = all(each.resumed for each in chain)
    combined = replace(last, key=trial.key, cost=money, resumed=resumed)
    if last.usable or last.status is Status.CANCELLED:
        return combined
    first = next(each for each in chain if not each.usable)
    combined = replace(combined, status=first.status, cause=first.cause, error=first.error)
    began = any(each.attempts for each in chain)
    # A partial prediction, from an execute step that was interrupted even during clean-up, must stay.
    if first.status not in _REASONS or not began or await is_partial(context.out, trial):
        return replace(combined, traceback=first.traceback)
    # The execute step never began.
    metadata, plans = _failure_metadata(step, outcomes, money, context)
    value: Any = {"patch": await blobs.store(""), "plans": plans, "metadata": metadata}
    return replace(combined, value=value)


async def _record_failure(
    step: Step, outcomes: Mapping[str, Outcome], money: BudgetSnapshot, context: InferenceContext
) -> None:
    """Write an empty patch and the error of a failed trial, unless a prediction is already there."""
    if not await has_outcome(context.out, step.trial):
        metadata, _ = _failure_metadata(step, outcomes, money, context)
        await write_prediction(context.out, step.trial, Prediction(b"", metadata), context)


def _failure_metadata(
    step: Step, outcomes: Mapping[str, Outcome], money: BudgetSnapshot, context: InferenceContext
) -> tuple[dict[str, Any], Sequence[str]]:
    """Return the metadata of a trial without an executed step, and the digests of its plans."""
    values: dict[str, Any] = {each.kind.value: outcomes[each.key].value for each in step.previous_steps}
    steps = {kind: without_plans(value) for kind, value in values.items() if value is not None}
    first = next(outcomes[each.key] for each in (*step.previous_steps, step) if not outcomes[each.key].usable)
    ending = TrialEnd(_REASONS.get(first.status, FinishReason.ERROR), utc_now(), first.error)
    plans = (values.get(StepKind.PLAN) or {}).get("plans", [])
    return inference_metadata(step.trial, context, steps, money, ending), plans
