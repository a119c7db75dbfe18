"""A user's table of stars is read whatever its columns are called, and its dirt is counted."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from codetaste.errors import ConfigError
from codetaste.mining.ranking.stars import load_stars


def load(path: Path) -> tuple[int, list[tuple[str, int]]]:
    with duckdb.connect() as connection:
        unusable = load_stars(connection, path)
        rows = connection.execute("SELECT repository, stars FROM star_rows ORDER BY ALL").fetchall()
    return unusable, rows


@pytest.mark.parametrize(
    "header", ["repository,stars", "Name,Stargazers", "full_name, stargazers_count", "repo,watchers"]
)
def test_columns_are_found_by_their_names(tmp_path: Path, header: str) -> None:
    path = tmp_path / "stars.csv"
    path.write_text(f"{header},language\no/a,12,Go\nhttps://github.com/o/b,3,\n")
    assert load(path) == (0, [("o/a", 12), ("o/b", 3)])


def test_unusable_rows_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "stars.csv"
    path.write_text("repository,stars\no/a,12\no/b,many\nno-owner,5\n,\no/c,-1\no/d,\n", "utf-8")
    assert load(path) == (5, [("o/a", 12)])


def test_table_without_a_column_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stars.csv"
    path.write_text("repository,forks\no/a,12\n")
    with pytest.raises(ConfigError, match=r"needs a column of names .* it has repository, forks"):
        load(path)


@pytest.mark.parametrize("content", [None, b"", b"\0\1\2" * 100])
def test_what_is_no_table_is_refused_in_one_line(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "stars.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"stars\.csv") as caught:
        load(path)
    assert "\n" not in str(caught.value)
