"""What each filter of the funnel removed and left."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.filter_result import FilterResult, Stage
from codetaste.mining.funnel import (
    MAX_EXAMPLES,
    MAX_REASONS,
    UNKNOWN,
    Funnel,
    FunnelRow,
    funnel_from_json,
    funnel_to_json,
)
from codetaste.report.render.csv import render_csv
from codetaste.report.render.text import render_text
from codetaste.report.tables.funnel import funnel_reasons_table, funnel_table


def passed(name: str, stage: Stage = Stage.KEYWORDS, value: str = "100") -> FilterResult:
    return FilterResult(stage, name, passed=True, value=value, bound=">= 90")


def dropped(name: str, reason: str, stage: Stage = Stage.KEYWORDS) -> FilterResult:
    return FilterResult(stage, name, passed=False, value="1", bound=">= 90", reason=reason)


def make_funnel() -> Funnel:
    funnel = Funnel()
    funnel.add("a/a@1", [passed("stars"), passed("files"), passed("lines", Stage.PREFILTER)])
    funnel.add("b/b@2", [passed("stars", value=UNKNOWN), dropped("files", "12 files, fewer than 45")])
    funnel.add("c/c@3", [dropped("stars", "7 stars, fewer than 90"), passed("files")])
    funnel.add("d/d@4", [dropped("stars", "1,204.5 stars, fewer than 90")])
    funnel.add_cost(Stage.SCORING, "message", Decimal("1.20"))
    return funnel


def test_commit_counts_up_to_the_filter_that_drops_it() -> None:
    stars, files, lines, message = make_funnel().rows
    assert stars == FunnelRow(
        Stage.KEYWORDS, "stars", 4, 2, 1, (("N stars, fewer than N", 2),), ("c/c@3", "d/d@4")
    )
    assert (files.entered, files.removed, files.passed, files.examples) == (2, 1, 1, ("b/b@2",))
    assert (lines.stage, lines.entered, lines.removed, lines.reasons) == (Stage.PREFILTER, 1, 0, ())
    assert (message.entered, message.cost_usd) == (0, Decimal("1.20"))


def test_counts_of_a_query_and_of_another_run_are_added() -> None:
    funnel = make_funnel()
    row = FunnelRow(Stage.KEYWORDS, "stars", 1000, 900, 10, (("N stars, fewer than N", 800),), ("x/x@9",))
    funnel.add_rows([row, FunnelRow(Stage.SOURCE, "merged", 5000, 4000)])
    merged, stars, *_ = funnel.rows
    assert (merged.stage, merged.passed, merged.reasons) == (Stage.SOURCE, 1000, (("no reason", 4000),))
    assert (stars.entered, stars.removed, stars.unknown) == (1004, 902, 11)
    assert stars.reasons == (("N stars, fewer than N", 802), ("no reason", 100))


def test_figure_data_is_json_and_can_be_read_back() -> None:
    rows = make_funnel().rows
    data = json.loads(json.dumps(funnel_to_json(rows)))
    assert data["rows"][0]["passed"] == 2
    assert data["rows"][3]["cost_usd"] == "1.2"
    assert funnel_from_json(data) == rows
    assert Funnel(funnel_from_json(data)).rows == rows


def test_table_is_shown_in_a_terminal_and_as_csv() -> None:
    rows = make_funnel().rows
    text = render_text(funnel_table(rows), 140)
    assert "stars" in text
    assert "c/c@3" in text
    assert "N stars, fewer than N" in text
    cells = list(csv.DictReader(io.StringIO(render_csv([funnel_table(rows), funnel_reasons_table(rows)]))))
    removed = {(cell["section"], cell["row"]): cell["value"] for cell in cells if cell["column"] == "removed"}
    assert removed["keywords", "stars"] == "2"
    shown = {(cell["table"], cell["row"], cell["column"]): cell["value"] for cell in cells}
    assert shown["funnel", "files", "reason"] == "N files, fewer than N"
    assert shown["funnel-reasons", "files / N files, fewer than N", "commits"] == "1"


FILTERS = ("stars", "files", "keywords", "lines")
RESULT = st.tuples(st.booleans(), st.sampled_from(["12", UNKNOWN]), st.text("ab1 ", max_size=3))


@given(st.lists(st.lists(RESULT, min_size=1, max_size=len(FILTERS)), max_size=60), st.integers(0, 60))
def test_counts_are_those_of_all_commits(commits: list[list[tuple[bool, str, str]]], split: int) -> None:
    """Whether they are counted in one funnel or in two that are added up."""
    funnel, other = Funnel(), Funnel()
    entered, removed, unknown = Counter[str](), Counter[str](), Counter[str]()
    for number, results in enumerate(commits):
        made = [
            FilterResult(Stage.KEYWORDS, name, passed=ok, value=value, bound="", reason=reason)
            for name, (ok, value, reason) in zip(FILTERS, results, strict=False)
        ]
        (funnel if number < split else other).add(f"r@{number}", made)
        for each in made:
            entered[each.filter] += 1
            unknown[each.filter] += each.passed and each.value == UNKNOWN
            if not each.passed:
                removed[each.filter] += 1
                break
    funnel.add_rows(other.rows)
    assert {row.filter: row.entered for row in funnel.rows} == entered
    assert {row.filter: row.removed for row in funnel.rows if row.removed} == {**removed}
    assert {row.filter: row.unknown for row in funnel.rows if row.unknown} == {**+unknown}
    for row in funnel.rows:
        assert sum(number for _, number in row.reasons) == row.removed
        assert len(row.examples) == min(MAX_EXAMPLES, row.removed)
    assert funnel_from_json(funnel_to_json(funnel.rows)) == funnel.rows


def test_reasons_of_many_kinds_are_bounded() -> None:
    funnel = Funnel()
    for number in range(1000):
        funnel.add(f"r@{number}", [dropped("files", "x" * (number % 100))])
    (row,) = funnel.rows
    assert len(row.reasons) == MAX_REASONS + 1
    assert row.reasons[0] == ("other reasons", 800)
    assert row.removed == 1000
