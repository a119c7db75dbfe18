"""The results of trials as rows: one for each, also of those that have no answer or no score."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.orchestration.job import Status
from codetaste.swe_refactor.answers.edit.tree import read_files
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.outcome import outcome_of_job
from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.report.trials_file import update_trials
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.code_text import refactored_code
from codetaste.swe_refactor.trials.answer import TrialAnswer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping

    from codetaste.orchestration.job import Outcome
    from codetaste.swe_refactor.trials.context import TrialContext
    from codetaste.swe_refactor.trials.plan import StrategyTrial


def describe_score(score: Outcome | None) -> str:
    """Return in a few words what an answer is worth; "" without a score."""
    if (found := _read_score(score)) is None:
        return ""
    similarity = f", CodeBLEU {found.codebleu.score:.3f}" if found.codebleu else ""
    return f"{found.reason.replace('_', ' ')}{similarity}"


async def write_trial_rows(
    trials: Iterable[StrategyTrial],
    outcomes: Mapping[str, Outcome],
    context: TrialContext,
    load_text: Callable[[str], Awaitable[str]],
) -> list[TrialRow]:
    """Write the rows of all trials to the run's folder, beside those of earlier sessions, and return them.

    Raises:
        JournalError: an answer is missing or damaged, or the file cannot be written.
        StorageFull: no space left.
    """
    chosen = list(trials)
    rows = [await _trial_row(trial, outcomes, context, load_text) for trial in chosen]
    unfinished = {
        row.key
        for trial, row in zip(chosen, rows, strict=True)
        if any(
            key in outcomes and outcomes[key].status is Status.CANCELLED
            for key in (trial.answer_key, trial.score_key)
        )
    }
    folder = context.out / FOLDER
    await to_thread.run_sync(partial(folder.mkdir, parents=True, exist_ok=True))
    await to_thread.run_sync(update_trials, folder / TRIALS_FILE, rows, unfinished)
    return rows


async def _trial_row(
    trial: StrategyTrial,
    outcomes: Mapping[str, Outcome],
    context: TrialContext,
    load_text: Callable[[str], Awaitable[str]],
) -> TrialRow:
    answer, score = outcomes[trial.answer_key], outcomes.get(trial.score_key)
    value: Any = answer.value or {}
    ended = answer if score is None or answer.status is not Status.DONE else score
    row = TrialRow(
        trial.strategy.title,
        trial.system,
        trial.instance.unique_id,
        context.source(trial.instance).project,
        trial.instance.type,
        trial.attempt,
        outcome_of_job(ended.status, ended.cause),
        cost_usd=answer.cost.spent.usd,
        turns=value.get("turns"),
        wall_s=value.get("wall_s"),
        run=context.out.name,
        model_label=trial.model_label,
        scripted=trial.scripted,
        detail=ended.error,
    )
    found = _read_score(score)
    if found is None:
        return row
    code = ""
    if not found.is_success and found.problem is None:
        edited = await TrialAnswer.load(value, load_text)
        tree = context.source(trial.instance).tree
        code = await to_thread.run_sync(
            lambda: refactored_code(trial.instance, read_files(tree, edited.files), edited.files)
        )
    return row.with_score(found, code)


def _read_score(score: Outcome | None) -> AnswerScore | None:
    value: Any = None if score is None or not score.usable else score.value
    return None if value is None else AnswerScore.from_json(value)
