"""The text of a pull request in messages as GitHub writes them, in Python and in DuckDB."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.keywords.message import (
    MERGE_LINE,
    SQUASH_LIST,
    pull_request_text,
)

CONNECTION = duckdb.connect()
MERGE = "Merge pull request #12 from me/fix-lint"


@pytest.mark.parametrize(
    ("message", "text"),
    [
        (f"{MERGE}\n\nRename a\n\nBecause.", "Rename a\n\nBecause."),
        (MERGE, MERGE),
        ("Merge branch 'fix' into main", "Merge branch 'fix' into main"),
        ("Rename a (#12)\r\n\r\n* fix lint\r\n\r\n* b", "Rename a (#12)"),
        ("Rename a (#12)\n\n- fix\n- b", "Rename a (#12)"),
        ("Rename a (#12)\n\nBecause:\n\n* b", "Rename a (#12)\n\nBecause:\n\n* b"),
        ("Rename a\n\n* b\n* c", "Rename a\n\n* b\n* c"),
        ("Rename a (#12)", "Rename a (#12)"),
        ("", ""),
    ],
)
def test_what_github_adds_is_removed(message: str, text: str) -> None:
    assert pull_request_text(message) == text


@given(
    st.lists(
        st.sampled_from([MERGE, "Rename a (#1)", "\n", "\r\n", "* b", "- c", " ", "é重", "\v", "\n\n"]),
        max_size=12,
    ).map("".join)
)
def test_duckdb_replaces_the_same(message: str) -> None:
    row = CONNECTION.execute(
        "SELECT regexp_replace(regexp_replace($1, $2, ''), $3, '\\1')", [message, MERGE_LINE, SQUASH_LIST]
    ).fetchone()
    assert row is not None
    assert row[0].strip() == pull_request_text(message)
