"""The files of scored commits: candidates as a table, and all scores with their reasoning as JSON lines."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.mining.scoring.candidate import ScoredCommit

COLUMNS = (
    *("owner", "repo", "commit_hash", "golden_commit_hash", "combined_score", "category", "language"),
    *("message_score", "diff_score", "stars", "files", "date", "licence", "source"),
)
"""First those of the published candidates, then our own."""


def format_candidates(commits: Iterable[ScoredCommit]) -> str:
    """Format candidates, best first, as CSV; an unknown value is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for each in commits:
        record, facts = each.record, each.facts
        owner, _, repo = record.repository.partition("/")
        row = [
            *(owner, repo, facts and facts.base, facts.golden if facts else record.golden, each.total_score),
            *(facts and facts.category.value, facts and facts.language),
            *(each.message_score, each.diff_score, record.stars, record.files),
            *(record.date and record.date.isoformat(), record.licence, record.source),
        ]
        writer.writerow("" if value is None else value for value in row)
    return text.getvalue()


def format_scores(commits: Iterable[ScoredCommit], chosen: Iterable[ScoredCommit]) -> str:
    """Format all scored commits, a JSON document a line, with the reasoning and the fate of each."""
    candidates = {id(each) for each in chosen}
    return "".join(
        f"{json.dumps(_commit_to_json(each, candidate=id(each) in candidates))}\n" for each in commits
    )


def _commit_to_json(commit: ScoredCommit, *, candidate: bool) -> dict[str, Any]:
    record = commit.record
    return {
        "repository": record.repository,
        "golden": record.golden,
        "candidate": candidate,
        "message_score": commit.message_score,
        "diff_score": commit.diff_score,
        "total_score": commit.total_score,
        "message": commit.message.to_json(),
        "diff": commit.diff and commit.diff.to_json(),
        "facts": commit.facts and commit.facts.to_json(),
    }
