"""Stage 1 over files of records gives what the paper's sentences give by brute force."""

from __future__ import annotations

import csv
import os
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import SourceError
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.keywords.count import KeywordCounts, count_keywords
from codetaste.mining.keywords.sets import load_keyword_sets
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.rank import rank_record_files, write_incomplete_records
from codetaste.mining.ranking.record_file import read_records, write_records
from codetaste.mining.ranking.result import Ranking, size_results
from support.mining.archive_keywords import KEYWORDS
from support.mining.archive_ranking_model import FILTERS, ModelBounds, rank_by_hand

WORDS = (
    "Refactor",
    "dedup",
    "move",
    "moved",
    "fix",
    "lint",
    "add",
    "test",
    "prefix",
    "chore:",
    "\n",
    "İ",
    " ",
)
DATE = datetime(2023, 1, 1, tzinfo=UTC)
BOUNDS = ModelBounds(min_stars=90, min_files=45, keep=4)
CONFIG = RankingConfig(min_stars=90, min_files=45, keep=4)

texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
names = st.sampled_from(("o/a", "o/b", "O/A", "p/c"))
rows = st.fixed_dictionaries(
    {
        "repository": names,
        "golden": st.sampled_from(("", "1" * 40, "2" * 40, "3" * 40, "4" * 40, "5" * 40, "6" * 40)),
        "message": texts,
        "title": st.none() | texts,
        "body": texts,
        "stars": st.none() | st.sampled_from((0, 89, 90, 91, 500)),
        "date": st.none() | st.sampled_from([DATE, DATE + timedelta(seconds=9)]),
        "files": st.none() | st.sampled_from((0, 44, 45, 46, 500)),
    }
)


def record(row: dict[str, Any]) -> CommitRecord:
    return CommitRecord(
        repository=row["repository"],
        golden=row["golden"],
        message=row["message"],
        pull_request=None if row["title"] is None else PullRequest(1, row["title"], row["body"]),
        stars=row["stars"],
        files=row["files"],
        date=row["date"],
    )


def rank(records: list[CommitRecord], folder: Path, config: RankingConfig = CONFIG) -> Ranking:
    file = folder / "re[c]ords' file.jsonl"
    write_records(file, records)
    return anyio.run(rank_record_files, [file], KEYWORDS, config, folder / "spill")


@settings(max_examples=20)
@given(st.lists(rows, max_size=40), st.dictionaries(names, st.integers(0, 200), max_size=2))
def test_ranking_is_that_of_brute_force(commits: list[dict[str, Any]], table: dict[str, int]) -> None:
    table = {name.lower(): stars for name, stars in table.items()}
    with tempfile.TemporaryDirectory() as name:
        stars = Path(name) / "stars.csv"
        with stars.open("w", newline="") as file:
            csv.writer(file).writerows([("full_name", "stars"), *table.items()])
        config = CONFIG.model_copy(update={"stars": stars})
        found = rank([record(row) for row in commits], Path(name), config)
    expected, removed = rank_by_hand(commits, table, BOUNDS)
    assert [(each.record.repository, each.record.golden) for each in found.commits] == expected
    assert {row.filter: row.removed for row in found.rows} == removed


def test_counts_of_filters_follow_one_another(tmp_path: Path) -> None:
    commits = [
        CommitRecord("o/none", "", message="refactor", stars=500, files=99),
        CommitRecord("o/few", "1" * 40, message="refactor", stars=89, files=99),
        CommitRecord("o/small", "2" * 40, message="refactor", stars=90, files=44),
        CommitRecord("o/fix", "3" * 40, message="refactor, fix", stars=90, files=45),
        CommitRecord("o/add", "4" * 40, message="refactor, add", stars=90, files=45),
        CommitRecord("o/plain", "5" * 40, message="update", stars=90, files=45),
        CommitRecord("o/unknown", "6" * 40, message="refactor"),
        CommitRecord("o/good", "7" * 40, message="refactor", stars=90, files=45),
    ]
    ranking = rank(commits, tmp_path)
    assert [(row.filter, row.entered, row.removed) for row in ranking.rows] == [
        ("incomplete", 8, 1),
        ("stars", 7, 1),
        ("files", 6, 1),
        ("strong_minus", 5, 1),
        ("ratio", 4, 2),
        ("duplicate", 2, 0),
        ("best", 2, 0),
    ]
    unknown = {row.filter: row.unknown for row in ranking.rows if row.unknown}
    assert unknown == {"stars": 1, "files": 1}
    assert [each.record.repository for each in ranking.commits] == ["o/good", "o/unknown"]


def test_record_comes_back_whole(tmp_path: Path) -> None:
    whole = CommitRecord(
        repository="o/a",
        golden="1" * 40,
        base="2" * 40,
        message="merge",
        pull_request=PullRequest(7, "Refactor", "a \N{GREEK SMALL LETTER GAMMA} 'body'\r\n\x00\u2028end"),
        stars=100,
        files=50,
        additions=2,
        deletions=3,
        date=datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC),
        licence="MIT",
        source="an hour",
    )
    [ranked] = rank([whole], tmp_path).commits
    assert ranked.record == whole
    assert ranked.counts == KeywordCounts(1, 0, 0, 0)


def test_counts_are_those_of_the_keyword_room(tmp_path: Path) -> None:
    sets = load_keyword_sets()
    messages = [
        "Refactor: move the RENAMED parser\n\n* cleans up, İ, dé-dup, rename_all\n",
        " \t\r\nfeat(x)!: Split-up of the code base; reorganized",
        "chore: tidy. Refactoring, refactor_io and restructure",
    ]
    records = [
        CommitRecord(f"o/r{number}", f"{number:040x}", message=message)
        for number, message in enumerate(messages * 2)
    ]
    file = tmp_path / "records.jsonl"
    write_records(file, records)
    ranking = anyio.run(rank_record_files, [file], sets, RankingConfig(), tmp_path)
    assert ranking.commits
    assert all(each.counts == count_keywords(each.record.text, sets) for each in ranking.commits)


def test_incomplete_records_are_written_once_for_completion(tmp_path: Path) -> None:
    stars = tmp_path / "stars.csv"
    stars.write_text("repository,stars\nO/Many,500\no/few,3\n")
    trimmed = PullRequest(3, "", "")
    records = [
        CommitRecord("o/unknown", "", pull_request=PullRequest(1, "", ""), source="an hour"),
        CommitRecord("o/few", "", pull_request=PullRequest(2, "", "")),
        CommitRecord("o/many", "", pull_request=trimmed, date=datetime(2026, 1, 2, tzinfo=UTC)),
        CommitRecord("O/many", "", pull_request=trimmed, date=datetime(2026, 1, 3, tzinfo=UTC)),
        CommitRecord("o/many", "1" * 40, message="refactor"),
    ]
    file, target = tmp_path / "records.jsonl", tmp_path / "incomplete.jsonl"
    write_records(file, records)
    config = RankingConfig(stars=stars)
    count = anyio.run(write_incomplete_records, [file], target, config, tmp_path)
    assert list(read_records(target)) == [replace(records[2], stars=500), records[0]]
    assert count == 2


@pytest.mark.parametrize("after_s", [0.0, 0.1])
def test_cancelled_ranking_ends_soon_and_leaves_nothing(tmp_path: Path, after_s: float) -> None:
    file = tmp_path / "records.jsonl"
    write_records(file, (CommitRecord("o/r", f"{n:040x}", message="refactor " * 50) for n in range(2_000)))

    async def main() -> None:
        with anyio.move_on_after(after_s) as scope:
            await rank_record_files([file] * 200, KEYWORDS, CONFIG, tmp_path / "spill")
        assert scope.cancelled_caught
        left.extend(folder for folder, _, _ in os.walk(tmp_path) if "duckdb" in folder)

    left: list[str] = []
    anyio.run(main)
    assert left == []


def test_nothing_is_ranked_from_no_commits(tmp_path: Path) -> None:
    ranking = rank([], tmp_path)
    assert ranking.commits == ()
    assert [row.filter for row in ranking.rows] == list(FILTERS)
    assert not any(row.entered for row in ranking.rows)


def test_missing_file_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.jsonl") as caught:
        anyio.run(rank_record_files, [tmp_path / "gone.jsonl"], KEYWORDS, CONFIG, tmp_path)
    assert "\n" not in str(caught.value)


def test_folder_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "spill").write_text("no folder")
    with pytest.raises(SourceError, match=r"spill: cannot be used by stage 1"):
        rank([], tmp_path)


def test_engine_leaves_no_files_behind(tmp_path: Path) -> None:
    rank([], tmp_path)
    assert list((tmp_path / "spill").iterdir()) == []


def test_each_filter_of_sizes_shows_its_number() -> None:
    shown = size_results(CommitRecord("o/a", "1" * 40, stars=89, files=None), RankingConfig())
    assert [(each.filter, each.passed, each.value, each.bound) for each in shown] == [
        ("incomplete", True, "1" * 40, "hash of the commit"),
        ("stars", False, "89", "at least 90"),
        ("files", True, "unknown", "at least 45"),
    ]
    assert shown[1].reason == "89 stars, fewer than 90"
