"""Outcomes of trials after all jobs have ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import FinishReason
from codetaste.benchmark.trial_identity import StepKind
from codetaste.errors import JournalError
from codetaste.flows.agents.result import utc_now
from codetaste.flows.infer.outputs import (
    Prediction,
    TrialEnd,
    has_outcome,
    inference_metadata,
    is_partial,
    load_prediction,
    write_prediction,
)
from codetaste.flows.infer.results import ExecuteResult, JudgeResult, PlanResult
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.flows.infer.context import InferenceContext
    from codetaste.flows.infer.plan import Step
    from codetaste.flows.infer.results import StepMetadata
    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.blobs import Blobs


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
    record of the failure, so that later counts include it. Files of an earlier session that were removed, or
    overwritten by another config with the same run name, are written again.

    ``outcomes`` are those of all jobs, by key; ``budget`` is the flow's, the parent of the trials' budgets.

    Raises:
        JournalError: a file cannot be read; StorageFull is one of these.
        ExceptionGroup: JournalErrors of the predictions that could not be written; all others are written.
    """
    trials: dict[str, Outcome] = {}
    failures: list[JournalError] = []
    for step in steps:
        if step.kind is not StepKind.EXECUTE:
            continue
        chain = [outcomes[each.key] for each in (*step.previous_steps, step)]
        money = budget.child(step.trial.budget_name).snapshot()
        ended = _EndedTrial(step, chain, money, context)
        try:
            trials[step.trial.key] = outcome = await ended.outcome(blobs)
            if outcome.status is Status.FAILED and not await has_outcome(context.out, step.trial):
                await write_prediction(step.trial, Prediction(b"", ended.failure_metadata()), context)
            elif outcome.usable and (chain[-1].resumed or not chain[-1].usable):
                prediction = await load_prediction(ExecuteResult.from_json(outcome.value), blobs)
                await write_prediction(step.trial, prediction, context)
        except JournalError as error:
            failures.append(error)
    if failures:
        raise ExceptionGroup("some predictions could not be written", failures)
    return trials


@dataclass(frozen=True, slots=True)
class _EndedTrial:
    """A trial whose jobs have ended; ``chain`` has the outcomes of its steps in their order."""

    step: Step
    chain: list[Outcome]
    money: BudgetSnapshot
    context: InferenceContext

    @property
    def first_unusable(self) -> Outcome:
        """The outcome that ended the trial."""
        return next(each for each in self.chain if not each.usable)

    async def outcome(self, blobs: Blobs) -> Outcome:
        """Return the outcome of the trial."""
        trial, last = self.step.trial, self.chain[-1]
        resumed = all(each.resumed for each in self.chain)
        combined = replace(last, key=trial.key, cost=self.money, resumed=resumed)
        if last.usable or last.status is Status.CANCELLED:
            return combined
        first = self.first_unusable
        combined = replace(combined, status=first.status, cause=first.cause, error=first.error)
        began = any(each.attempts for each in self.chain)
        # A partial prediction, from an execute step that was interrupted even during clean-up, must stay.
        if not first.status.by_limit or not began or await is_partial(self.context.out, trial):
            return replace(combined, traceback=first.traceback)
        # The execute step never began.
        planned = self._steps().get(StepKind.PLAN)
        plans = planned.plans if isinstance(planned, PlanResult) else ()
        value = ExecuteResult(await blobs.store(""), plans, self.failure_metadata())
        return replace(combined, value=value.to_json())

    def failure_metadata(self) -> dict[str, object]:
        """Return the metadata of a trial without an executed step."""
        first = self.first_unusable
        reason = FinishReason(first.status.value) if first.status.by_limit else FinishReason.ERROR
        end = TrialEnd(reason, utc_now(), first.error)
        return inference_metadata(self.step.trial, self.context, self._steps(), self.money, end)

    def _steps(self) -> dict[str, StepMetadata]:
        values = {
            each.kind: outcome.value
            for each, outcome in zip(self.step.previous_steps, self.chain, strict=False)
            if outcome.value is not None
        }
        steps: dict[str, StepMetadata] = {}
        if StepKind.PLAN in values:
            steps[StepKind.PLAN] = PlanResult.from_json(values[StepKind.PLAN])
        if StepKind.JUDGE in values:
            steps[StepKind.JUDGE] = JudgeResult.from_json(values[StepKind.JUDGE])
        return steps
