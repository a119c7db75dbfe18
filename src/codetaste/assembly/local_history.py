"""The best commits of a local clone by stages 1 and 2 of mining, which need no model."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.mining.clones.commits import read_commits
from codetaste.mining.clones.diffs import find_diff
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.prefilter.stage import run_stage_2
from codetaste.mining.ranking.rank import rank_record_files
from codetaste.mining.ranking.record_file import write_records

if TYPE_CHECKING:
    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.problem import CommitProblem
    from codetaste.mining.funnel import FunnelRow
    from codetaste.mining.prefilter.diff import CommitDiff
    from codetaste.mining.prefilter.prefilter import PrefilterLimits
    from codetaste.mining.ranking.config import RankingConfig


@dataclass(frozen=True, slots=True)
class LocalHistory:
    """The commits that stage 2 took, the best first, what each filter did, and what could not be read."""

    selected: tuple[CommitDiff, ...]
    funnel: tuple[FunnelRow, ...]
    problems: tuple[CommitProblem, ...]


async def read_local_history(clone: Clone, ranking: RankingConfig, limits: PrefilterLimits) -> LocalHistory:
    """Run stages 1 and 2 over all commits of a clone (CodeTaste A.1).

    Raises:
        ConfigError: DuckDB is not installed.
        SourceError: the clone cannot be read.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    problems: list[CommitProblem] = []
    sets = await to_thread.run_sync(load_keyword_sets)
    with tempfile.TemporaryDirectory(prefix="codetaste-history-") as name:
        folder = Path(name)
        file = folder / "records.jsonl"

        def write() -> None:
            write_records(
                file, read_commits(clone, problems.append, check=from_thread.check_cancelled, lines=False)
            )

        await to_thread.run_sync(write)
        ranked = await rank_record_files([file], sets, ranking, folder)
        found = [await find_diff(each.record, CommitPlaces(), clone) for each in ranked.commits]
    stage_2 = await to_thread.run_sync(run_stage_2, found, limits)
    return LocalHistory(stage_2.prefiltered.selected, (*ranked.rows, *stage_2.rows), tuple(problems))
