"""Rows as files and data frames: the same values in each format, equal bytes for equal rows."""

from __future__ import annotations

import csv
import io
import json
import sys
from dataclasses import asdict, replace
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import ToolMissing
from codetaste.results.rows.files import RowFormat, render_rows
from codetaste.results.rows.frames import to_pandas, to_polars
from codetaste.results.rows.rule import RuleVerdict
from codetaste.results.rows.schema import columns_of
from codetaste.results.rows.trial import TrialResult

FORMATS: tuple[RowFormat, ...] = ("csv", "jsonl", "parquet")
TRIAL = TrialResult(
    run="r",
    folder=None,
    benchmark="codetaste",
    agent="a",
    model="m",
    instance="o__r-1",
    repository="o/r",
    language=None,
    category=None,
    attempt=1,
    outcome="success",
    status="scored",
    reason=None,
    passed=True,
    alignment=1,
    turns=3,
    notes=("one, two", 'a "third"'),
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
ROWS = st.lists(
    st.builds(
        replace,
        st.just(TRIAL),
        agent=TEXTS,
        reason=st.none() | TEXTS,
        passed=st.none() | st.booleans(),
        alignment=st.none() | st.floats(0, 1),
        turns=st.none() | st.integers(0, 10**9),
        notes=st.lists(TEXTS, max_size=3).map(tuple),
    ),
    max_size=4,
)


def shown(text: str) -> str:
    """A text as rows have it, without what terminals obey: a model in few words."""
    return "".join(
        each if each.isprintable() else " " if each.isspace() else each.encode("unicode_escape").decode()
        for each in text
    )


def expected(row: TrialResult) -> dict[str, Any]:
    values = asdict(row) | {"alignment": None if row.alignment is None else float(row.alignment)}
    values |= {name: shown(value) for name, value in values.items() if isinstance(value, str)}
    return values | {name: [*map(shown, value)] for name, value in values.items() if isinstance(value, tuple)}


@settings(max_examples=40, deadline=None)
@given(ROWS)
def test_each_format_gives_the_values_back(rows: list[TrialResult]) -> None:
    wanted = [expected(row) for row in rows]
    lines = render_rows(TrialResult, rows, "jsonl").decode().split("\n")
    assert [json.loads(line) for line in lines[:-1]] == wanted
    table = pq.read_table(io.BytesIO(render_rows(TrialResult, rows, "parquet")))
    assert table.to_pylist() == wanted
    assert table.schema.metadata[b"codetaste_schema_version"] == b"1"
    cells = [*csv.DictReader(io.StringIO(render_rows(TrialResult, rows, "csv").decode(), newline=""))]
    assert len(cells) == len(rows)
    for cell, value in zip(cells, wanted, strict=True):
        assert cell["agent"].removeprefix("'") == value["agent"].removeprefix("'")
        assert cell["alignment"] == ("" if value["alignment"] is None else repr(value["alignment"]))
        assert cell["passed"] == {None: "", True: "true", False: "false"}[value["passed"]]
        assert json.loads(cell["notes"] or "[]") == value["notes"]


@given(ROWS)
@settings(max_examples=10, deadline=None)
def test_equal_rows_give_equal_bytes(rows: list[TrialResult]) -> None:
    for format_ in FORMATS:
        assert render_rows(TrialResult, rows, format_) == render_rows(TrialResult, [*rows], format_)


def test_a_formula_and_an_escape_sequence_reach_no_spreadsheet_and_no_terminal() -> None:
    row = replace(TRIAL, agent="=HYPERLINK(1)", reason="\x1b[2Jgone\u202e")
    text = render_rows(TrialResult, [row], "csv").decode()
    assert "'=HYPERLINK(1)" in text
    for format_ in ("csv", "jsonl"):
        content = render_rows(TrialResult, [row], format_).decode()  # type: ignore[arg-type]
        assert "\x1b" not in content
        assert "\u202e" not in content


@pytest.mark.parametrize("kind", [TrialResult, RuleVerdict])
def test_files_without_rows_have_the_columns(kind: type[Any]) -> None:
    names = [column.name for column in columns_of(kind)]
    assert render_rows(kind, [], "csv").decode().strip() == ",".join(names)
    assert pq.read_table(io.BytesIO(render_rows(kind, [], "parquet"))).column_names == names
    assert list(to_pandas(kind, []).columns) == to_polars(kind, []).columns == names


def test_pandas_knows_missing_values_of_each_type() -> None:
    frame = to_pandas(TrialResult, [TRIAL, replace(TRIAL, passed=None, turns=None, alignment=None)])
    assert [str(frame[name].dtype) for name in ("agent", "passed", "turns", "alignment")] == [
        "string",
        "boolean",
        "Int64",
        "Float64",
    ]
    assert frame["turns"].isna().tolist() == [False, True]
    assert frame["alignment"].mean() == 1.0
    assert isinstance(frame, pd.DataFrame)


def test_polars_has_the_types_of_the_schema() -> None:
    frame = to_polars(TrialResult, [TRIAL])
    assert frame.schema["turns"] == pl.Int64
    assert frame.schema["notes"] == pl.List(pl.String)
    assert frame["notes"].to_list() == [list(TRIAL.notes)]


def test_what_is_missing_is_named_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pyarrow", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ToolMissing, match=r"Parquet needs .* pyarrow .* install codetaste\[report\]"):
        render_rows(TrialResult, [], "parquet")
    with pytest.raises(ToolMissing, match=r"to_polars needs .* polars .* install polars"):
        to_polars(TrialResult, [])
