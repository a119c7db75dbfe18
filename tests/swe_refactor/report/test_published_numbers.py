"""The numbers of Tables 2 to 5 and Figure 3 come out of rows that have the paper's counts (§4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from codetaste.report.table import format_cell
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.report.models import table_2
from codetaste.swe_refactor.report.sample.stratified import TYPE_MIX
from codetaste.swe_refactor.report.successes import figure_3, table_3, table_4, table_5
from support.swe_refactor.trial_rows import rows_of_counts

if TYPE_CHECKING:
    from codetaste.report.table import Row, Table
    from codetaste.swe_refactor.report.trial_row import TrialRow

SIZES = dict(zip(REFACTORING_TYPES, (441, 71, 410, 142, 21, 14), strict=True))
MODELS = {
    "DeepSeek-V3": (554, 674, (301, 50, 76, 30, 0, 0), ("50.41", "61.33", "41.58")),
    "gpt-4o-mini": (537, 636, (259, 53, 92, 33, 1, 0), ("48.86", "57.87", "39.85")),
    "gpt-3.5-turbo": (199, 142, (48, 9, 23, 2, 0, 0), ("18.11", "12.92", "7.46")),
    # The paper prints 1.10 for 12 of 1,099, which is 1.0919 %.
    "CodeLLaMa 7B": (41, 48, (12, 0, 0, 0, 0, 0), ("3.73", "4.37", "1.09")),
    "DeepSeek Coder 6.7B": (31, 70, (6, 1, 0, 0, 0, 0), ("2.82", "6.37", "0.64")),
    "Qwen2.5 Coder 14B": (22, 101, (2, 5, 0, 0, 0, 0), ("2.00", "9.19", "0.64")),
    "Qwen2.5 Coder 7B": (20, 142, (5, 1, 0, 0, 0, 0), ("1.82", "12.92", "0.55")),
    "DeepSeek Coder 16B": (23, 101, (1, 1, 0, 1, 0, 0), ("2.09", "9.19", "0.27")),
    "CodeLLaMa 13B": (14, 15, (1, 0, 0, 0, 0, 0), ("1.27", "1.36", "0.09")),
}
"""Compile & test, verified, successes by type (Tables 2 and 3), and the three percentages of Table 2."""
WORKFLOWS = {
    "gpt-4o": ((304, 45, 197, 106, 14, 9), "61.42"),
    "gpt-4o-mini": ((317, 22, 109, 115, 15, 1), "52.68"),
}
"""Table 4; the text has 61.4 % and 52.7 %."""
SAMPLE = {"codex": ((73, 12, 53, 11, 2, 0), "75.50"), "gpt-4o": ((59, 9, 46, 17, 1, 2), "67.00")}
"""Table 5; the text has 75.5 %."""


def by_type(numbers: tuple[int, ...]) -> dict[str, int]:
    return dict(zip(REFACTORING_TYPES, numbers, strict=True))


@pytest.fixture(scope="module")
def rows() -> list[TrialRow]:
    return [
        row
        for model, (compiles, verified, successes, _) in MODELS.items()
        for row in rows_of_counts(SIZES, by_type(successes), compiles, verified, model=model)
    ]


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
    rows = [
        row
        for model, (successes, _) in WORKFLOWS.items()
        for row in rows_of_counts(SIZES, by_type(successes), model=model, strategy="multi-agent")
    ]
    table = table_4(rows)
    assert table.columns[2].heading == "Total (1,099)"
    for row, (model, (successes, percent)) in zip(table.rows, WORKFLOWS.items(), strict=True):
        cells = shown(table, row)
        assert (cells["model"], cells["total_count"], cells["total_share"]) == (
            *(model, str(sum(successes))),
            percent,
        )
        assert row.cells[4::2] == successes


def test_table_5() -> None:
    rows = [
        row
        for model, (successes, _) in SAMPLE.items()
        for row in rows_of_counts(TYPE_MIX, by_type(successes), model=model, strategy="agent")
    ]
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
