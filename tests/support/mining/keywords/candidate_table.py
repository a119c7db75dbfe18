"""Where published candidates land in stages 1 and 2: the tables of ``docs/mined-pairs.md``.

``PYTHONPATH=tests .venv/bin/python -m support.mining.keywords.candidate_table COMMITS.jsonl CLONES PAIRS``
prints them in Markdown: a table for each CSV file of pairs, of which there may be several, with those whose
repository has a clone ``CLONES/OWNER/REPO`` and that are in no file before it.

The population is what stage 1 takes of the large commits in COMMITS.jsonl (``commits.py``), as in one mining
run; it gives the places. Bounds and ranks are estimated: they are of each tenth commit of it. Duplicates are
not looked for.
"""

from __future__ import annotations

import sys
import tempfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio

from codetaste.mining.clones.clone import find_clones
from codetaste.mining.clones.diffs import find_diffs
from codetaste.mining.clones.pairs import read_pairs
from codetaste.mining.clones.resolve import CommitPlaces
from codetaste.mining.commit import CommitRecord
from codetaste.mining.keywords.count import count_keywords, keyword_results
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.prefilter.code_files import count_code_edits
from codetaste.mining.prefilter.diff import CommitDiff
from codetaste.mining.prefilter.filters import check_code_edits, check_outliers
from codetaste.mining.prefilter.prefilter import Prefiltered, PrefilterLimits, prefilter
from codetaste.mining.prefilter.unreachable import Unreachable
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.rank import rank_record_files
from codetaste.mining.ranking.record_file import write_records
from codetaste.mining.ranking.result import size_results
from support.mining.keywords.commits import load_commits

BEST, KEEP, PASSED = RankingConfig().keep, PrefilterLimits().keep, "stage 3"
STEP = 10
"""The diff of each so many commits of the population is read."""
HEADER = (
    "| commit | files | K⁺ | K⁻ | place | code | lines | ratio | rank | lands |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
)


FILTERS = (
    *("reachable", "files", "strong_minus", "ratio", "best"),
    *("code_edits", "changed_lines", "changed_files", "gzip_ratio"),
)


@dataclass(frozen=True)
class Population:
    """Stages 1 and 2 over the large commits of the clones.

    Attributes:
        places: the place in the order of stage 1, from 1, by hash of each commit that passes its filters.
        counts: their keywords of K+ strong and weak, in ascending order.
    best: how many of them are taken.
            result: stage 2 of each ``STEP``-th of them.
        ratios: of those that reach the last filter, in ascending order.
        keep: how many of these are taken.
    """

    places: Mapping[str, int]
    counts: Sequence[tuple[int, int]]
    best: int
    result: Prefiltered
    ratios: Sequence[float]
    keep: int

    def place(self, golden: str, counts: tuple[int, int]) -> int:
        """Return the place of a commit in the order of stage 1; of a foreign one the best one possible."""
        return self.places.get(golden) or len(self.counts) - bisect_right(self.counts, counts) + 1

    def rank(self, diff: CommitDiff) -> int:
        """Return the place of a diff by its ratio, from 1, as if it reached the last filter."""
        return STEP * (len(self.ratios) - bisect_right(self.ratios, diff.compression_ratio)) + 1


@dataclass(frozen=True)
class Landing:
    """The filters that a pair fails, in their order, and its row of the table."""

    failed: Sequence[str]
    row: str

    @property
    def name(self) -> str:
        return self.failed[0] if self.failed else PASSED


async def read_population(path: Path, places: CommitPlaces, best: int, keep: int) -> Population:
    """Carry the large commits of a file through stages 1 and 2."""
    records = [
        CommitRecord(each.repository, each.hash, message=each.message, files=each.files)
        for each in load_commits(path)
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "records.jsonl"
        write_records(file, records)
        config = RankingConfig(keep=len(records))
        ranking = await rank_record_files([file], load_keyword_sets(), config, Path(folder))
    ranked = [replace(each.record, files=None) for each in ranking.commits]
    read = await find_diffs(ranked[:best:STEP], places)
    diffs = [each for each in read if isinstance(each, CommitDiff) and large_enough(each)]
    result = prefilter(diffs, PrefilterLimits(keep=keep // STEP))
    reached = {each.record.golden for each in result.checked if each.results[-1].filter == "gzip_ratio"}
    return Population(
        {each.golden: place for place, each in enumerate(ranked, 1)},
        sorted((each.counts.strong_plus, each.counts.weak_plus) for each in ranking.commits),
        best,
        result,
        sorted(each.compression_ratio for each in diffs if each.golden in reached),
        keep,
    )


def large_enough(diff: CommitDiff) -> bool:
    return all(each.passed for each in size_results(diff.record, RankingConfig()))


def land(diff: CommitDiff | Unreachable, population: Population) -> Landing:
    """Return where a pair lands."""
    name = f"{diff.record.repository}@{diff.record.golden[:8]}"
    if isinstance(diff, Unreachable):
        return Landing(["reachable"], f"| {name} |" + " – |" * 8 + f" reachable: {diff.reason} |\n")
    counts = count_keywords(diff.record.text, load_keyword_sets())
    place = population.place(diff.golden, (counts.strong_plus, counts.weak_plus))
    rank = population.rank(diff)
    bounds = population.result.bounds
    failed = {
        each.filter
        for each in [
            *size_results(diff.record, RankingConfig()),
            *keyword_results(counts),
            check_code_edits(diff),
            *(check_outliers(diff, bounds) if bounds else []),
        ]
        if not each.passed
    }
    failed |= {"best"} if place > population.best else set()
    failed |= {"gzip_ratio"} if rank > population.keep else set()
    landing = Landing(sorted(failed, key=FILTERS.index), "")
    row = [
        name,
        f"{diff.changed_files:,}",
        f"{counts.strong_plus} + {counts.weak_plus}",
        f"{counts.strong_minus}, {counts.weak_minus}",
        f"{place:,}",
        f"{sum(map(count_code_edits, diff.files)):,}",
        f"{diff.changed_lines:,}",
        f"{diff.compression_ratio:.3f}",
        f"{rank:,}",
        landing.name,
    ]
    return replace(landing, row=f"| {' | '.join(row)} |\n")


def read_tables(files: Sequence[Path], clones: Path) -> Iterator[tuple[str, list[CommitRecord]]]:
    """Yield the name of each file of pairs and its pairs that have a clone, each pair once."""
    seen, there = set[str](), find_clones(clones)
    for file in files:
        records = [
            each
            for each in read_pairs(file.read_bytes(), file.name).records
            if each.golden not in seen and each.repository in there
        ]
        seen |= {each.golden for each in records}
        yield file.name, sorted(records, key=lambda each: (each.repository.lower(), each.golden))


def population_lines(population: Population) -> Iterator[str]:
    result = population.result
    yield f"{len(population.places):,} commits pass stage 1, the best {population.best:,} are taken\n"
    yield f"{len(result.checked):,} of these are read, {len(population.ratios):,} reach the last filter\n"
    if result.bounds is not None:
        yield f"lines {result.bounds.lines}, files {result.bounds.files}, ratio from {result.lowest_ratio}\n"


def table_lines(name: str, landings: Sequence[Landing]) -> Iterator[str]:
    """Yield the table of a file of pairs, and before it how many land where."""
    first, any_ = (
        Counter(each.name for each in landings),
        Counter(f for each in landings for f in each.failed),
    )
    yield f"\n## {name}\n\n| filter | pairs that it drops first | pairs that fail it |\n| --- | --- | --- |\n"
    yield from (f"| {each} | {first[each]} | {any_[each]} |\n" for each in FILTERS)
    yield f"| {PASSED} | {first[PASSED]} | of {len(landings)} |\n\n{HEADER}"
    yield from (each.row for each in landings)


async def main(commits: Path, clones: Path, *pairs: Path, best: int = BEST, keep: int = KEEP) -> None:
    places = CommitPlaces(clones)
    population = await read_population(commits, places, best, keep)
    sys.stdout.writelines(population_lines(population))
    for name, records in read_tables(pairs, clones):
        landings = [land(diff, population) for diff in await find_diffs(records, places)]
        sys.stdout.writelines(table_lines(name, landings))


if __name__ == "__main__":
    anyio.run(lambda: main(*map(Path, sys.argv[1:])))
