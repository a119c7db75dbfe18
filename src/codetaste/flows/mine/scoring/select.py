"""Choose the commits whose diffs are scored, and then the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from anyio import to_thread

from codetaste.benchmark.layout import CANDIDATE_SCORES_FILE, CANDIDATES_FILE, MINING_FOLDER
from codetaste.core.files import write_atomically
from codetaste.core.text import plural
from codetaste.errors import ModelRefused
from codetaste.flows.mine.scoring.context import ScoringTask
from codetaste.mining.funnel import funnel_to_json
from codetaste.mining.scoring.candidate import (
    DiffFacts,
    ScoredCommit,
    commit_id,
    rank_by_message,
    rank_by_total,
    score_result_from_json,
    scoring_funnel,
)
from codetaste.mining.scoring.output import format_candidates, format_scores
from codetaste.mining.scoring.scores import DiffScores, MessageScores

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.flows.mine.scoring.context import ScoringContext, SelectionTask
    from codetaste.mining.scoring.candidate import ScoreResult
    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json

MAX_REFUSED, MAX_REFUSED_SHARE = 10, 0.1
"""More commits without scores that another session may get, in number and share: nothing is chosen."""


def choose_by_message(task: SelectionTask, context: ScoringContext, job: JobContext) -> list[ScoredCommit]:
    """Return the commits whose diffs are scored, best first.

    Raises:
        ModelRefused: too many messages could not be scored in this session.
    """
    commits = read_scores(task, job)
    _check_refused([each.message for each in commits])
    return rank_by_message(commits)[: context.config.top_by_message]


async def choose_by_total(task: SelectionTask, context: ScoringContext, job: JobContext) -> Json:
    """Choose the candidates and write the files of all scores.

    Return as JSON the candidates, best first, and the rows of the funnel.

    Raises:
        ModelRefused: too many diffs could not be scored in this session.
    """
    commits = read_scores(task, job)
    _check_refused([each.diff for each in commits if each.diff is not None])
    chosen = rank_by_total(commits)[: context.config.top]
    await to_thread.run_sync(write_scores, context.out, task.mining_run, commits, chosen)
    candidates: list[Any] = [
        {
            "repository": each.record.repository,
            "golden": each.record.golden,
            "total_score": each.total_score,
            "facts": each.facts and each.facts.to_json(),
        }
        for each in chosen
    ]
    rows = scoring_funnel(commits, context.config.top_by_message, context.config.top)
    return {"candidates": candidates, "funnel": funnel_to_json(rows)}


def read_scores(task: SelectionTask, job: JobContext) -> list[ScoredCommit]:
    """Return the commits of a selection with the scores that its job needs."""
    commits: list[ScoredCommit] = []
    for record in task.records:
        keys = ScoringTask(task.mining_run, record)
        message = score_result_from_json(job.needs[keys.message_key], MessageScores)
        if commit_id(record) not in task.diffs:
            commits.append(ScoredCommit(record, message))
            continue
        value: Any = job.needs[keys.diff_key]
        diff = score_result_from_json(value["result"], DiffScores)
        facts = value["facts"] and DiffFacts.from_json(value["facts"])
        commits.append(ScoredCommit(record, message, diff, facts))
    return commits


def write_scores(
    out: Path, mining_run: str, commits: Sequence[ScoredCommit], chosen: Sequence[ScoredCommit]
) -> None:
    """Write the table of candidates and the scores of all commits; blocking."""
    folder = out / MINING_FOLDER / mining_run
    write_atomically(folder / CANDIDATE_SCORES_FILE, format_scores(commits, chosen))
    write_atomically(folder / CANDIDATES_FILE, format_candidates(chosen))


def _check_refused(results: Sequence[ScoreResult[Any]]) -> None:
    """Check that few results are missing for a reason that ends, so that the choice is not left to chance."""
    refused = [each for each in results if each.transient]
    bound = max(MAX_REFUSED, int(len(results) * MAX_REFUSED_SHARE))
    if refused and (len(refused) > bound or len(refused) == len(results)):
        raise ModelRefused(
            f"{plural(len(refused), 'commit')} of {len(results):,} could not be scored, so none is chosen; "
            f"the first: {refused[0].problem}; run again to score them"
        )
