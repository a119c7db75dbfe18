"""The other tables: effort, counts, attempts, groups, and the benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.benchmark.benchmark import open_benchmark, quickstart_folder
from codetaste.benchmark.facts.clones import PatchCounts
from codetaste.benchmark.facts.facts import BenchmarkFacts, InstanceFacts, describe_benchmark
from codetaste.benchmark.instance import Instance
from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.trials.records import TrialRecord, TrialSource, TrialStatus
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.comparison import compare_systems
from codetaste.report.statistics.intervals import Interval
from codetaste.report.statistics.merge import merge_runs
from codetaste.report.statistics.view import AggregatedTrials, aggregate_trials
from codetaste.report.table import Cell, Table
from codetaste.report.tables.benchmark import table_1, table_2
from codetaste.report.tables.comparison import comparison_table
from codetaste.report.tables.effort import attempts_table, counts_table, effort_table
from codetaste.report.tables.groups import GroupBy, group_table
from codetaste.report.tables.scores import strict_success_table
from support.evaluation.records import several, trial


def aggregate(records: list[TrialRecord]) -> AggregatedTrials:
    return aggregate_trials(merge_runs(records), Aggregation.STRICT)


def cells(table: Table, row: int = 0) -> dict[str, Cell]:
    """Return a row by the names of its columns, an interval as its mean."""
    values = [cell.mean if isinstance(cell, Interval) else cell for cell in table.rows[row].cells]
    return dict(zip([column.name for column in table.columns], values, strict=True))


def test_effort_table_has_the_figures_of_the_paper_text() -> None:
    busy = {"activity": Activity(commands=9, test_runs=4, bulk_edits=2), "cost_usd": 5.0, "turns": 10}
    idle = {"activity": Activity(), "cost_usd": 1.0, "turns": 2, "finish_reason": "budget_exceeded"}
    records = [trial("a", "o__x-1", 1.0, **busy), trial("a", "o__y-1", 0.5, **idle), trial("a", "o__z-1")]
    row = cells(effort_table(aggregate(records)))
    assert row["trials"] == 3
    assert (row["budget_exceeded"], row["timeout"]) == (1, 0)
    assert (row["cost_usd"], row["turns"]) == (3.0, 6.0)
    assert (row["ran_tests"], row["test_runs"]) == (0.5, 2.0)
    assert (row["made_bulk_edits"], row["bulk_edits"]) == (0.5, 1.0)
    assert any(
        "no value of" in note and "Ran tests in 1" in note for note in effort_table(aggregate(records)).notes
    )


def test_tables_of_costs_and_comparisons_name_the_agents_of_scripted_models() -> None:
    scripted = {"source": TrialSource.CODETASTE, "provider": "scripted"}
    view = aggregate([trial("played", ifr=1.0, **scripted), trial("real", ifr=1.0, cost_usd=1.0)])
    note = "scripted, with costs that are not real: played"
    assert note in effort_table(view).notes
    assert note in comparison_table(compare_systems(view)).notes
    assert not any("scripted" in note for note in effort_table(aggregate([trial("real", ifr=1.0)])).notes)


def test_counts_table_has_every_status_with_reasons() -> None:
    statuses = list(TrialStatus)
    records = [
        trial("a", f"o__r{n}-1", 1.0, status=status, reason="a reason") for n, status in enumerate(statuses)
    ]
    records.append(trial("b", "o__elsewhere-1", 1.0))
    table = counts_table(aggregate(records))
    row = cells(table, 1)
    assert row["trials"] == len(statuses)
    assert [row[status] for status in statuses] == [1] * len(statuses)
    assert row["absent"] == 1
    assert "1 trial: failed: a reason" in table.notes


def test_attempts_table_exists_only_with_several_attempts() -> None:
    assert attempts_table(aggregate(several("a", [1.0, 1.0], passed=True))) is None
    records = [
        trial("a", f"o__r{place}-1", 1.0, passed=attempt <= passes, attempt=attempt)
        for place, passes in enumerate((0, 1, 2, 4))
        for attempt in (1, 2, 3, 4)
    ]
    table = attempts_table(aggregate(records))
    assert table is not None
    row = cells(table)
    assert [column.title for column in table.columns][-3:] == ["pass@1", "pass@2", "pass@4"]
    assert row["pass_at_1"] == pytest.approx(7 / 16)
    assert row["pass_at_2"] == pytest.approx((0 + 3 / 6 + 5 / 6 + 1) / 4)
    assert row["pass_at_4"] == pytest.approx(3 / 4)


def test_failed_attempt_counts_as_not_passed() -> None:
    records = [
        trial("a", "o__r-1", 1.0, passed=True),
        trial("a", "o__r-1", attempt=2),
    ]
    table = attempts_table(aggregate(records))
    assert table is not None
    assert cells(table)["pass_at_1"] == 0.5


@pytest.mark.parametrize("by", list(GroupBy))
def test_trials_can_be_grouped_by_each_key(by: GroupBy) -> None:
    records = [
        trial(agent, f"o__r{place}-1", 0.1 * place, lane=lane, language=language, category="api")
        for agent in ("a", "b")
        for place, language in enumerate(("go", "go", "python", ""))
        for lane in ("instructed/direct", "open/plan")
    ]
    table = group_table(aggregate(records), by)
    trials = [
        dict(zip([column.name for column in table.columns], row.cells, strict=True)) for row in table.rows
    ]
    assert sum(int(str(row["trials"])) for row in trials) == len(records)
    if by is GroupBy.LANGUAGE:
        assert [row["language"] for row in trials[:6]] == [
            "go",
            "go",
            "python",
            "python",
            "unknown",
            "unknown",
        ]
        ifr = trials[0]["ifr"]
        assert isinstance(ifr, Interval)
        assert ifr.mean == pytest.approx(0.05)


def facts(repository: str, number: int | None, licence: str) -> InstanceFacts:
    instance = Instance("o", repository, "a" * 40, "b" * 40)
    golden = None if number is None else PatchCounts(number, 2 * number, number)
    return InstanceFacts(instance, number, number, number, number, number, golden, licence=licence)


def test_table_1_ignores_unknown_values_and_table_2_lists_repositories_once() -> None:
    known = BenchmarkFacts((facts("x", 10, "MIT"), facts("x", 20, "MIT"), facts("y", None, "unknown")))
    table = table_1(known)
    rows = {str(row.cells[0]): row.cells[1:] for row in table.rows}
    assert rows["Files Changed"] == (20, 15.0, 2)
    assert rows["Lines Edited"] == (60, 45.0, 2)
    assert [row.cells for row in table_2(known).rows] == [("o/x", "MIT", 2), ("o/y", "unknown", 1)]


def test_quickstart_has_table_1() -> None:
    table = table_1(describe_benchmark(open_benchmark(quickstart_folder())))
    assert table.rows[0].cells[3] == len(open_benchmark(quickstart_folder()).instances)


def test_table_1_of_published_benchmark_equals_the_paper(published_data: Path) -> None:
    table = table_1(describe_benchmark(open_benchmark(published_data)))
    rows = {str(row.cells[0]): row.cells[1:] for row in table.rows}
    assert rows["Files Changed"] == (290, 91.52, 100)
    assert rows["Lines Added"] == (7172, pytest.approx(1190.33), 100)
    assert rows["Lines Edited"][0] == 18821
    assert rows["Lines Edited"][1] == pytest.approx(2605.39, abs=0.05)
    assert rows["Total Rules"][0] == 170
    assert len(table_2(describe_benchmark(open_benchmark(published_data))).rows) == 87


def test_strict_success_table_has_strict_success_f1_and_medians() -> None:
    made = [(True, 1.0, 0.5), (True, 0.5, 0.5), (False, 1.0, 1.0), (True, 1.0, 0.2)]
    records = [
        trial(instance=f"o__r{number}-1", ifr=rate, passed=passed, prec=prec, added=number, removed=number)
        for number, (passed, rate, prec) in enumerate(made)
    ]
    row = cells(strict_success_table(aggregate(records)))
    assert row["strict_success"] == 2 / 4
    assert row["f1"] == pytest.approx((2 / 3 + 0.5 + 0 + 1 / 3) / 4)
    assert (row["ifr"], row["prec"], row["edited"]) == (1.0, 0.5, 3.0)
    assert row["alignment"] == (0.5 + 1.0) / 2
