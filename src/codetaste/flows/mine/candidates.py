"""The candidates of all mining runs, the best first."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import CANDIDATES_FILE
from codetaste.errors import JournalError
from codetaste.flows.mine.context import prefiltered_file
from codetaste.mining.ranking.record_file import read_records

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable
    from pathlib import Path

    from codetaste.flows.mine.context import MiningContext
    from codetaste.mining.commit import CommitRecord

UNKNOWN_LANGUAGE = "other"


@dataclass(frozen=True, slots=True)
class MinedCandidate:
    """A commit that mining chose, as an instance.

    Attributes:
        instance: its row in the table of a benchmark.
        record: the commit, with its texts.
        score: S_total.
        clone: the clone that has it; None if it was fetched.
    """

    instance: Instance
    record: CommitRecord
    score: float
    clone: Path | None


def read_candidates(
    context: MiningContext, note: Callable[[str], None], runs: Collection[str]
) -> list[MinedCandidate]:
    """Read the candidates of the mining runs ``runs``, highest score first.

    Of several with the same base commit, which would be one instance, the best stays: the same commit in two
    runs, or two changes of the same code. A run that has not come to its choice has none that hold: its files
    may be of an earlier choice. Blocking.

    Raises:
        JournalError: a file of the run is damaged.
    """
    found: dict[str, MinedCandidate] = {}
    read = [
        each
        for run in context.config.runs
        if run.name in runs
        for each in _read_run(context.folder(run), context.places(run).clones)
    ]
    read.sort(key=lambda each: (-each.score, each.instance.id, each.record.golden))
    for each in read:
        best = found.setdefault(each.instance.id, each)
        if best.record.golden != each.record.golden:
            note(f"{each.record.name} is left out: {best.record.name} has the same base and scores higher")
    return list(found.values())


def _read_run(folder: Path, clones: Path | None) -> Iterable[MinedCandidate]:
    try:
        text = (folder / CANDIDATES_FILE).read_text("utf-8")
    except FileNotFoundError:
        return
    records = {(each.repository, each.golden): each for each in read_records(prefiltered_file(folder))}
    try:
        for row in csv.DictReader(io.StringIO(text)):
            owner, repo, golden = row["owner"], row["repo"], row["golden_commit_hash"]
            score = float(row["combined_score"])
            language = row["language"] or UNKNOWN_LANGUAGE
            hashes = row["commit_hash"], golden
            clone = None if clones is None else clones / owner / repo
            yield MinedCandidate(
                Instance(owner, repo, *hashes, score, row["category"], language),
                records[f"{owner}/{repo}", golden],
                score,
                clone if clone is not None and clone.exists() else None,
            )
    except (KeyError, ValueError) as error:
        raise JournalError(f"{folder / CANDIDATES_FILE}: it is damaged: {error!r}") from error
