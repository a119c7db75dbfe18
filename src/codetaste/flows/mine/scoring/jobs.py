"""The jobs of stage 3: messages, the choice by message, diffs of the chosen, and the choice by total score.

The job that chooses by message adds those that follow. In a session that continues a run it must do so again:
``add_scoring`` repeats both choices, which cost nothing, while scores are taken from the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.flows.inputs import CODETASTE, digest_of_inputs, digests_of_inputs
from codetaste.flows.mine.scoring.context import ScoringTask, SelectionTask, selection_keys
from codetaste.flows.mine.scoring.inputs import (
    VERSION,
    diff_inputs,
    diff_request,
    message_inputs,
    message_request,
)
from codetaste.flows.mine.scoring.score import TRIES, score_diff, score_message
from codetaste.flows.mine.scoring.select import choose_by_message, choose_by_total
from codetaste.mining.scoring.candidate import commit_id
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetPath, NamedLimits
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from codetaste.flows.mine.scoring.context import ScoringContext
    from codetaste.mining.commit import CommitRecord
    from codetaste.orchestration.job import Handler, JobContext
    from codetaste.orchestration.journal.journal import Json
    from codetaste.orchestration.session import Session

MESSAGE, BY_MESSAGE = "mine.message", "mine.select_by_message"
DIFF, BY_TOTAL = "mine.diff", "mine.select_by_total"
"""The kinds of the jobs."""


def add_scoring(
    session: Session,
    mining_run: str,
    records: Iterable[CommitRecord],
    context: ScoringContext,
    budget: BudgetPath,
) -> None:
    """Add the jobs that score ``records`` to a session that has the handlers, before or while it runs.

    Args:
        session: the open run.
        mining_run: the name of the mining run; its files are in a folder of that name.
        records: commits that passed stage 2; one that occurs twice counts once.
        context: what the jobs share.
        budget: the nodes above that of the scores.
    """
    session.repeat(selection_keys(mining_run))
    session.add(*scoring_jobs(mining_run, records, context, budget))


def scoring_jobs(
    mining_run: str, records: Iterable[CommitRecord], context: ScoringContext, budget: BudgetPath
) -> list[Job]:
    """Return the jobs for all messages, and the one that chooses by them, under ``budget``."""
    unique: dict[str, CommitRecord] = {}
    for record in records:
        unique.setdefault(commit_id(record), record)
    commits = tuple(unique.values())
    limits = NamedLimits(f"scores of {mining_run}", BudgetLimits(usd=context.config.budget_usd))
    path = (*budget, limits)
    messages = [_message_job(ScoringTask(mining_run, record), context, path) for record in commits]
    task = SelectionTask(mining_run, commits)
    return [*messages, _selection_job(BY_MESSAGE, task, context, path)]


def scoring_handlers(context: ScoringContext, add: Callable[..., None]) -> dict[str, Handler]:
    """Return what runs the jobs of ``scoring_jobs`` and those that they add with ``add``, by kind."""

    async def select_by_message(job: Job, run: JobContext) -> Json:
        task: SelectionTask = job.parameters
        chosen = [each.record for each in choose_by_message(task, context, run)]
        diffs = [_diff_job(ScoringTask(task.mining_run, each), context, job.budget) for each in chosen]
        last = SelectionTask(task.mining_run, task.records, frozenset(map(commit_id, chosen)))
        add(*diffs, _selection_job(BY_TOTAL, last, context, job.budget))
        return [commit_id(each) for each in chosen]

    return {
        MESSAGE: lambda job, run: score_message(job.parameters, context, run),
        BY_MESSAGE: select_by_message,
        DIFF: lambda job, run: score_diff(job.parameters, context, run),
        BY_TOTAL: lambda job, run: choose_by_total(job.parameters, context, run),
    }


def _message_job(task: ScoringTask, context: ScoringContext, budget: BudgetPath) -> Job:
    inputs = message_inputs(task.record, context)
    return Job(
        task.message_key,
        MESSAGE,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        lane=context.model_label,
        title=f"{task.record.name} message",
        group=f"messages ({context.model_label})",
        min_cost=context.model.min_cost(message_request(task.record, context)),
        handler_limits={TRIES: context.config.tries},
    )


def _diff_job(task: ScoringTask, context: ScoringContext, budget: BudgetPath) -> Job:
    inputs = diff_inputs(task.record, context)
    return Job(
        task.diff_key,
        DIFF,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        lane=context.model_label,
        title=f"{task.record.name} diff",
        group=f"diffs ({context.model_label})",
        # Without a diff it costs less than any request that will be made.
        min_cost=context.model.min_cost(diff_request("", context)),
        handler_limits={TRIES: context.config.tries},
    )


def _selection_job(kind: str, task: SelectionTask, context: ScoringContext, budget: BudgetPath) -> Job:
    by_message, by_total = selection_keys(task.mining_run)
    tasks = [ScoringTask(task.mining_run, record) for record in task.records]
    diffs = [each.diff_key for each in tasks if commit_id(each.record) in task.diffs]
    counts = {
        "mine.scoring.top_by_message": context.config.top_by_message,
        "mine.scoring.top": context.config.top,
    }
    inputs = {CODETASTE: str(VERSION), **{name: str(count) for name, count in counts.items()}}
    return Job(
        by_message if kind == BY_MESSAGE else by_total,
        kind,
        budget,
        fingerprint=digest_of_inputs(inputs),
        inputs=digests_of_inputs(inputs),
        parameters=task,
        needs=(*(each.message_key for each in tasks), *diffs),
        title=f"{task.mining_run}: choice by {'message' if kind == BY_MESSAGE else 'total score'}",
        group="choices",
        costs_nothing=True,
    )
