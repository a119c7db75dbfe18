"""Tables of scores, costs and comparisons: what a reader sees, and what is said about missing values."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from codetaste.report.render.csv import render_csv
from codetaste.report.render.json import table_to_json
from codetaste.report.render.latex.render import render_latex
from codetaste.report.render.markdown import render_markdown
from codetaste.report.render.text import render_text
from codetaste.report.statistics.intervals import Interval, Method
from codetaste.swe_refactor.report.comparison import compare_successes, ranking_table, tests_table
from codetaste.swe_refactor.report.models import effort_table, table_2
from codetaste.swe_refactor.report.successes import figure_3, score_table, table_3, table_4, table_5
from support.swe_refactor.trial_rows import rows_of_counts, trial_row

if TYPE_CHECKING:
    from codetaste.report.table import Table

SIZES = {"Extract Method": 30, "Move Method": 10}
GOOD = rows_of_counts(SIZES, {"Extract Method": 25, "Move Method": 8}, model="good")
POOR = rows_of_counts(SIZES, {"Extract Method": 3}, model="poor")
SAME = rows_of_counts(SIZES, {"Extract Method": 2}, model="same", strategy="rag")
ROWS = [*POOR, *GOOD, *SAME]


def cell(table: Table, row: int, name: str) -> object:
    return table.rows[row].cells[[column.name for column in table.columns].index(name)]


def test_a_model_with_one_attempt_has_wilsons_interval() -> None:
    found = cell(table_2(GOOD), 0, "success_share")
    assert isinstance(found, Interval)
    assert (found.method, found.n) == (Method.WILSON, 40)
    # Wilson's interval of 33 of 40, z = 1.959964.
    assert found.low == pytest.approx(0.6805, abs=1e-4)
    assert found.high == pytest.approx(0.9125, abs=1e-4)


def test_only_intervals_that_a_table_shows_are_explained() -> None:
    table = table_2([trial_row(instance=f"i{n}", codebleu=0.5 + n / 20, success=n > 1) for n in range(4)])
    mean = cell(table, 0, "codebleu_all")
    assert isinstance(mean, Interval)
    assert mean.margin is not None
    assert [note for note in table.notes if "interval" in note] == [
        "[low, high]: 95 % Wilson interval of the share"
    ]


def test_attempts_at_one_instance_are_a_cluster() -> None:
    rows = [
        trial_row(instance=f"i{at}", attempt=attempt, success=at % 2 == 0)
        for at, attempt in product(range(60), (1, 2, 3))
    ]
    found = cell(table_2(rows), 0, "success_share")
    assert isinstance(found, Interval)
    assert (found.n, found.clusters, found.method) == (180, 60, Method.CLUSTER_T)
    assert "up to 3 attempts at an instance are counted" in table_3(rows).notes


def test_both_means_of_codebleu_and_the_number_without_one() -> None:
    rows = [
        trial_row(instance="a", codebleu=0.9),
        trial_row(instance="b", codebleu=0.3, success=False),
        trial_row(instance="c", codebleu=None, success=False),
    ]
    table = table_2(rows)
    overall, successes = (cell(table, 0, name) for name in ("codebleu_all", "codebleu_success"))
    assert isinstance(overall, Interval)
    assert isinstance(successes, Interval)
    assert (overall.mean, successes.mean) == (pytest.approx(0.6), pytest.approx(0.9))
    assert "CodeBLEU was not measured in 1 of 3 trials" in table.notes
    assert "0.600" in render_text(table)


def test_a_success_needs_the_strict_verification() -> None:
    table = table_2([trial_row(verified=False)])
    assert (cell(table, 0, "published_check_count"), cell(table, 0, "success_count")) == (1, 0)


def test_cost_of_a_success_is_that_of_all_trials() -> None:
    table = effort_table([trial_row(), trial_row(instance="b", success=False, turns=4, wall_s=120.0)])
    assert cell(table, 0, "cost_usd") == pytest.approx(0.02)
    assert cell(table, 0, "cost_usd_success") == pytest.approx(0.02)
    assert (cell(table, 0, "turns"), cell(table, 0, "wall_s")) == (2.5, 90.0)
    assert "0.0200" in render_text(table)


def test_an_unknown_cost_leaves_the_cost_of_a_success_unknown() -> None:
    table = effort_table(
        [trial_row(cost_usd=None, turns=None, wall_s=None), trial_row(instance="b", cost_usd=Decimal(1))]
    )
    assert cell(table, 0, "cost_usd_success") is None
    assert (cell(table, 0, "turns"), cell(table, 0, "wall_s")) == (1.0, 60.0)
    assert "the cost of 1 trial is unknown, and not in these figures" in table.notes


def test_no_success_has_no_cost() -> None:
    assert cell(effort_table([trial_row(success=False)]), 0, "cost_usd_success") is None


def test_scores_by_project_and_by_type() -> None:
    projects = score_table(ROWS, "project")
    assert [row.section for row in projects.rows[::18]] == ["simple, good", "simple, poor", "rag, same"]
    types = score_table([*GOOD, trial_row(model="good", type="Pull Up Method")], "type")
    assert [row.cells[0] for row in types.rows] == ["Extract Method", "Move Method", "Pull Up Method"]
    assert cell(types, 1, "success_count") == 8


def test_the_best_is_first_and_equal_ones_are_tied() -> None:
    table = ranking_table(ROWS)
    names = ("strategy", "model", "letter", "rank", "beats", "tied")
    assert [tuple(cell(table, at, name) for name in names) for at in range(3)] == [
        ("simple", "good", "a", 1, "b c", ""),
        ("simple", "poor", "b", 2, "", "c"),
        ("rag", "same", "c", 2, "", "b"),
    ]


def test_with_one_project_the_test_is_mcnemars() -> None:
    # 6 instances only the first solves, 1 only the second: exact two-sided p = 2·(1 + 7)/2^7.
    first = [trial_row(instance=f"i{at}", success=at < 9, model="a") for at in range(12)]
    second = [trial_row(instance=f"i{at}", success=at < 3 or at == 9, model="b") for at in range(12)]
    (test,) = compare_successes([*first, *second])
    assert (test.only_first, test.only_second, test.pairs, test.clusters) == (6, 1, 12, 12)
    assert test.p == pytest.approx(0.125)
    assert test.winner is None
    assert "1 project cannot show a difference" in tests_table([*first, *second]).notes[0]


def test_many_projects_are_the_clusters() -> None:
    (test, *_) = compare_successes(ROWS)
    assert (test.pairs, test.clusters) == (40, 18)


def test_models_with_different_instances_are_compared_on_the_common_ones() -> None:
    rows = [*GOOD, *POOR[:20]]
    (test,) = compare_successes(rows)
    assert test.pairs == 20
    assert "simple, poor: 20 of 40 instances" in ranking_table(rows).notes
    own = "shares are of each one's own instances, tests and ranks of common ones"
    assert own in ranking_table(rows).notes
    assert own not in ranking_table([*GOOD, *POOR]).notes
    assert "simple, poor: 20 of 40 instances" in table_2(rows).notes


def test_models_without_a_common_instance_are_not_compared() -> None:
    rows = [trial_row(model="a"), trial_row(model="b", instance="other")]
    assert compare_successes(rows) == []
    assert ranking_table(rows).notes[0] == "no two of them can be compared"


def test_instances_of_the_sample_without_a_trial_are_counted() -> None:
    table = table_5(GOOD, {GOOD[0].instance, "not tried"})
    assert table.notes[0] == "1 instance of the sample has no trial that counts"
    assert cell(table, 0, "total_count") == 1


TABLES = {
    "2": table_2,
    "effort": effort_table,
    "3": table_3,
    "4": table_4,
    "strategies": figure_3,
    "ranking": ranking_table,
    "tests": tests_table,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_written_in_every_format(name: str) -> None:
    for rows in (ROWS, ROWS[:0]):
        table = TABLES[name](rows)
        assert table.name == name
        assert len({(column.name, column.heading) for column in table.columns}) == len(table.columns)
        assert table.title[:20] in render_text(table, 100)
        assert render_latex(table)
        assert render_markdown(table)
        assert table_to_json(table)["name"] == name
        assert len(render_csv([table]).splitlines()) > len(table.rows)
