"""Stage 1 over files of records gives what the paper's sentences give by brute force."""

from __future__ import annotations

import csv
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import SourceError
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.ranking.config import RankingConfig
from codetaste.mining.ranking.query import KeywordPatterns
from codetaste.mining.ranking.rank import rank_record_files
from codetaste.mining.ranking.record_file import write_records
from codetaste.mining.ranking.result import Ranking, size_results
from support.mining.archive_ranking_model import FILTERS, PATTERNS, ModelBounds, rank_by_hand

KEYWORDS = KeywordPatterns(**PATTERNS)
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
    assert {count.filter: count.removed for count in found.filters} == removed


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
    assert [(count.filter, count.entered, count.removed) for count in ranking.filters] == [
        ("incomplete", 8, 1),
        ("stars", 7, 1),
        ("files", 6, 1),
        ("strong_minus", 5, 1),
        ("ratio", 4, 2),
        ("duplicate", 2, 0),
        ("best", 2, 0),
    ]
    assert (ranking.stars_unknown, ranking.files_unknown) == (1, 1)
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
    assert ranked.strong_plus == 1


def test_nothing_is_ranked_from_no_commits(tmp_path: Path) -> None:
    ranking = rank([], tmp_path)
    assert ranking.commits == ()
    assert [count.filter for count in ranking.filters] == list(FILTERS)
    assert not any(count.entered for count in ranking.filters)


def test_missing_file_is_named_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"gone\.jsonl") as caught:
        anyio.run(rank_record_files, [tmp_path / "gone.jsonl"], KEYWORDS, CONFIG, tmp_path)
    assert "\n" not in str(caught.value)


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
