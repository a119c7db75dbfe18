"""The numbers of Tables 2 to 5 and Figure 3 come out of rows that have the paper's counts (§4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from codetaste.report.table import format_cell
from codetaste.swe_refactor.report.models import table_2
from codetaste.swe_refactor.report.successes import figure_3, table_3, table_4, table_5
from support.swe_refactor.paper_run import (
    MODELS,
    SAMPLE,
    SIZES,
    WORKFLOWS,
    by_type,
    sample_rows,
    simple_rows,
    workflow_rows,
)
from support.swe_refactor.trial_rows import rows_of_counts

if TYPE_CHECKING:
    from codetaste.report.table import Row, Table
    from codetaste.swe_refactor.report.trial_row import TrialRow


@pytest.fixture(scope="module")
def rows() -> list[TrialRow]:
    return simple_rows()


def shown(table: Table, row: Row) -> dict[str, str]:
    return {
        column.name: format_cell(cell, column)[0]
        for column, cell in zip(table.columns, row.cells, strict=True)
    }


def test_table_2(rows: list[TrialRow]) -> None:
    table = table_2(rows)
    assert [row.cells[0] for row in table.rows] == [
        *("DeepSeek-V3", "gpt-4o-mini", "gpt-3.5-turbo", "CodeLLaMa 7B", "DeepSeek Coder 6.7B"),
        *("Qwen2.5 Coder 14B", "Qwen2.5 Coder 7B", "DeepSeek Coder 16B", "CodeLLaMa 13B"),
    ]
    for row in table.rows:
        compiles, verified, successes, percents = MODELS[str(row.cells[0])]
        cells = shown(table, row)
        names = ("compiles", "verified", "success")
        counts = (compiles, verified, sum(successes))
        assert tuple(cells[f"{name}_count"] for name in names) == tuple(map(str, counts))
        assert tuple(cells[f"{name}_share"] for name in names) == percents
        assert cells["trials"] == "1099"


def test_table_3(rows: list[TrialRow]) -> None:
    table = table_3(rows)
    assert [column.title for column in table.columns] == [
        *("Model", "Success", "EM (441)", "IM (71)", "MM (410)", "EM + MM (142)", "MM + RM (21)"),
        "MM + IM (14)",
    ]
    assert {str(row.cells[0]): row.cells[1:] for row in table.rows} == {
        model: (sum(successes), *successes) for model, (_, _, successes, _) in MODELS.items()
    }


def test_table_4() -> None:
    table = table_4(workflow_rows())
    assert table.columns[2].heading == "Total (1,099)"
    for row, (model, (successes, percent)) in zip(table.rows, WORKFLOWS.items(), strict=True):
        cells = shown(table, row)
        assert (cells["model"], cells["total_count"], cells["total_share"]) == (
            *(model, str(sum(successes))),
            percent,
        )
        assert row.cells[4::2] == successes


def test_table_5() -> None:
    rows = sample_rows()
    more = rows_of_counts({"Extract Method": 90}, {"Extract Method": 90}, model="gpt-4o", strategy="agent")
    table = table_5([*rows, *more[80:]], {row.instance for row in rows})
    assert [column.heading for column in table.columns[2::2]] == [
        *("Total (200)", "EM (80)", "IM (13)", "MM (74)", "EM + MM (26)", "MM + RM (4)", "MM + IM (3)")
    ]
    for row, (successes, percent) in zip(table.rows, SAMPLE.values(), strict=True):
        assert shown(table, row)["total_share"] == percent
        assert row.cells[4::2] == successes


def test_figure_3_has_the_strategies_of_a_model() -> None:
    totals = {"multi-agent": WORKFLOWS["gpt-4o-mini"][0], "simple": MODELS["gpt-4o-mini"][2]}
    rows = [
        row
        for strategy, successes in totals.items()
        for row in rows_of_counts(SIZES, by_type(successes), model="gpt-4o-mini", strategy=strategy)
    ]
    assert [(row.section, *row.cells) for row in figure_3(rows).rows] == [
        ("gpt-4o-mini", strategy, sum(successes), *successes) for strategy, successes in totals.items()
    ]
