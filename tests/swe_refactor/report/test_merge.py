"""Rows of several runs: each trial counts once, and no denominator has what is no fault of the model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.report.statistics.intervals import Interval
from codetaste.report.table import Table
from codetaste.swe_refactor.answers.problem import AnswerProblemKind
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.report.failures.table import failure_table
from codetaste.swe_refactor.report.merge import merge_rows, read_runs
from codetaste.swe_refactor.report.models import effort_table, table_2
from codetaste.swe_refactor.report.outcome import NoScore
from codetaste.swe_refactor.report.successes import table_4
from codetaste.swe_refactor.report.tables import TRIAL_TABLES, report_tables
from codetaste.swe_refactor.report.trial_row import TrialRow
from codetaste.swe_refactor.report.trials_file import write_trials
from codetaste.swe_refactor.score.check import CheckOutcome
from codetaste.swe_refactor.score.tested_answer import TestOutcome
from support.swe_refactor.trial_rows import trial_row

OUT = {
    *("not_scored", "provider_failure", "infrastructure_failure", "not_run"),
    *("wrong_tree", "base_fails", "tool_failed"),
}
"""Outcomes that are neither a success nor a failure."""
ZERO = {"budget_exceeded", "timeout", "max_turns", "refused"}

Plain = dict[str, Any]


def plain(row: TrialRow) -> Plain:
    return {name: str(value) if name == "outcome" else value for name, value in asdict(row).items()}


def model_of_merging(rows: Sequence[Plain]) -> list[tuple[str, str]]:
    """Return strategy and displayed model of each row, by comparing each row with each other."""
    by, key = ("strategy", "model"), ("strategy", "model", "instance", "attempt")
    shown = []
    for row in rows:
        others = [each for each in rows if each["run"] != row["run"] and all(each[n] == row[n] for n in by)]
        # The same trial in two runs tells all trials of that strategy and model apart.
        system = [each for each in rows if all(each[n] == row[n] for n in by)]
        twice = any(
            one["run"] != two["run"] and all(one[n] == two[n] for n in key)
            for one in system
            for two in system
        )
        mixed = any(each["scripted"] != row["scripted"] for each in others)
        mixed = mixed or len({each["scripted"] for each in system}) > 1
        name = f"{row['model']} ({row['run']})" if twice or mixed else row["model"]
        shown.append((row["strategy"], name))
    return shown


def model_of_scores(rows: Sequence[Plain]) -> dict[tuple[str, str], Plain]:
    """Return what the tables must say of each strategy and model."""
    found: dict[tuple[str, str], Plain] = {}
    for by in {(row["strategy"], row["model"]) for row in rows}:
        own = [row for row in rows if (row["strategy"], row["model"]) == by]
        counted = [row for row in own if row["outcome"] not in OUT]
        successes = [row for row in counted if row["compiles_and_passes"] and row["verified"]]
        bleu = [0.0 if row["outcome"] in ZERO else row["codebleu"] for row in counted]
        measured = [Fraction(each) for each in bleu if each is not None]
        costs = [row["cost_usd"] for row in counted]
        known = [each for each in costs if each is not None]
        found[by] = {
            "trials": len(counted),
            "not_counted": len(own) - len(counted),
            "compiles_count": sum(row["compiles_and_passes"] for row in counted),
            "verified_count": sum(row["verified"] for row in counted),
            "success_count": len(successes),
            "published_check_count": sum(row["published_check"] for row in counted),
            "success_share": Fraction(len(successes), len(counted)) if counted else None,
            "codebleu_all": sum(measured) / len(measured) if measured else None,
            "failures": len(counted) - len(successes),
            "cost_usd": sum(known) if known else None,
            "cost_usd_success": (
                sum(known) / len(successes) if successes and len(known) == len(costs) else None
            ),
        }
    return found


OUTCOMES = [
    *NoScore,
    *(AnswerProblemKind.NO_PARTS, AnswerProblemKind.WRONG_TREE),
    *(TestOutcome.BASE_FAILS, TestOutcome.TESTS_FAIL, TestOutcome.COMPILE_FAILS),
    *(CheckOutcome.TOOL_FAILED, CheckOutcome.NONE_FOUND, CheckOutcome.VERIFIED),
]


@st.composite
def trials(draw: st.DrawFn) -> TrialRow:
    outcome = draw(st.sampled_from(OUTCOMES))
    success = outcome is CheckOutcome.VERIFIED
    answered = not isinstance(outcome, NoScore)
    return trial_row(
        outcome=outcome,
        compiles_and_passes=isinstance(outcome, CheckOutcome),
        verified=success,
        published_check=success or (answered and draw(st.booleans())),
        codebleu=draw(st.none() | st.floats(0, 1)) if answered else None,
        run=draw(st.sampled_from(["r", "s"])),
        strategy=draw(st.sampled_from(["simple", "rag"])),
        model=draw(st.sampled_from("mn")),
        instance=draw(st.sampled_from("abc")),
        attempt=draw(st.integers(1, 2)),
        cost_usd=draw(st.none() | st.decimals(0, 10, places=6)),
        scripted=draw(st.sampled_from([False, False, False, True])),
    )


def cells(table: Table) -> dict[tuple[str, str], dict[str, Any]]:
    return {
        (row.section, str(row.cells[0])): {
            column.name: cell.mean if isinstance(cell, Interval) else cell
            for column, cell in zip(table.columns, row.cells, strict=True)
        }
        for row in table.rows
    }


@given(st.lists(trials(), max_size=40, unique_by=lambda row: (row.run, row.key)))
def test_runs_are_merged_and_counted_as_by_brute_force(rows: list[TrialRow]) -> None:
    merged = merge_rows(rows)
    assert [tuple(row.by) for row in merged.rows] == model_of_merging([*map(plain, rows)])
    assert [replace(row, model="") for row in merged.rows] == [replace(row, model="") for row in rows]
    assert len({row.key for row in merged.rows}) == len(rows)
    expected = model_of_scores([*map(plain, merged.rows)])
    for table in map(cells, (table_2(merged.rows), effort_table(merged.rows), failure_table(merged.rows))):
        assert table.keys() == expected.keys()
        for by, values in table.items():
            for name in values.keys() & expected[by].keys():
                wanted = expected[by][name]
                assert values[name] == (None if wanted is None else pytest.approx(float(wanted))), name
    ranked = [(row.cells[0], row.cells[1]) for row in table_4(merged.rows).rows]
    shares = [expected[by]["success_share"] for by in ranked]  # type: ignore[index]
    assert shares == sorted(shares, key=lambda share: -1 if share is None else share, reverse=True)


@given(st.lists(trials(), max_size=12, unique_by=lambda row: row.key))
def test_trials_that_do_not_count_change_no_share(rows: list[TrialRow]) -> None:
    outcomes = Counter(str(row.outcome) for row in rows)
    fewer = [row for row in rows if row.counted]
    assert {row.by for row in rows} >= {row.by for row in fewer}
    assert sum(outcomes[name] for name in OUT) == len(rows) - len(fewer)
    for name in TRIAL_TABLES:
        [with_all] = report_tables(rows, [name], set("abc"))
        [without] = report_tables(fewer, [name], set("abc"))
        names = [at for at, column in enumerate(with_all.columns) if column.name != "not_counted"]
        shown = {(row.section, *(str(row.cells[at]) for at in names)) for row in with_all.rows}
        assert {(row.section, *(str(row.cells[at]) for at in names)) for row in without.rows} <= shown


def test_the_note_says_what_is_not_counted_and_what_it_cost() -> None:
    rows = [
        trial_row(instance="a"),
        trial_row(instance="b", success=False, outcome=NoScore.PROVIDER, cost_usd=Decimal("1.5")),
        trial_row(instance="c", success=False, outcome=TestOutcome.BASE_FAILS, cost_usd=None),
        trial_row(instance="d", success=False, outcome=NoScore.BUDGET),
    ]
    table = table_2(rows)
    assert cells(table)["simple", "m"]["success_share"] == 0.5
    assert (
        "2 trials are not counted, as no fault of the model (base_fails 1, provider_failure 1); "
        "they cost $1.50"
    ) in table.notes


def test_a_model_none_of_whose_trials_counts_is_listed_but_not_ranked() -> None:
    rows = [trial_row(), trial_row(model="n", success=False, outcome=NoScore.NOT_RUN)]
    tables = {table.name: table for table in report_tables(rows, TRIAL_TABLES, {"i1"})}
    assert cells(tables["2"])["simple", "n"]["trials"] == 0
    assert [row.cells[1] for row in tables["ranking"].rows] == ["m"]
    assert "simple, n: 0 of 1 instances" in tables["ranking"].notes


def write_run(folder: Path, *rows: TrialRow, run: str = "") -> Path:
    write_trials(folder / FOLDER / TRIALS_FILE, [replace(row, run=run or folder.name) for row in rows])
    return folder


def test_a_model_of_two_runs_is_one_unless_both_have_the_same_trial(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", trial_row(instance="a"), trial_row(model="n"))
    two = write_run(tmp_path / "two", trial_row(instance="b"), trial_row(model="n"))
    merged = read_runs([one, two])
    assert [row.model for row in merged.rows] == ["m", "n (one)", "m", "n (two)"]
    assert merged.notes == (
        "simple, n: one and two have 1 trial in common; it is listed separately for each run",
    )


def test_runs_of_one_name_are_named_by_their_folders(tmp_path: Path) -> None:
    folders = [write_run(tmp_path / name, trial_row(), run="r") for name in "ab"]
    assert [row.model for row in read_runs(folders).rows] == ["m (r)", f"m ({tmp_path / 'b'})"]


def test_a_model_that_is_scripted_in_one_run_is_another_one(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", trial_row(instance="a", scripted=True))
    two = write_run(tmp_path / "two", trial_row(instance="b"))
    merged = read_runs([one, two])
    assert [row.model for row in merged.rows] == ["m (one)", "m (two)"]
    assert "scripted in some runs only" in merged.notes[0]
    assert "scripted, with costs that are not real: m (one)" in table_2(merged.rows).notes


def test_ids_of_different_files_are_refused(tmp_path: Path) -> None:
    one = write_run(tmp_path / "one", trial_row())
    two = write_run(tmp_path / "two", trial_row(model="n", type="Move Method"))
    with pytest.raises(ConfigError, match="instance i1 is Extract Method of junit4 in one, but Move Method"):
        read_runs([one, two])


def test_every_folder_without_trials_is_named(tmp_path: Path) -> None:
    (tmp_path / "codetaste" / "outputs").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    (tmp_path / "killed").mkdir()
    (tmp_path / "killed" / "journal.jsonl").write_text("")
    (tmp_path / "file").write_text("")
    names = ("codetaste", "empty", "killed", "file", "nowhere")
    with pytest.raises(ConfigError) as error:
        read_runs([tmp_path / name for name in names])
    assert all(str(tmp_path / name) in line for name, line in zip(names, error.value.problems, strict=True))
    assert [line.rpartition(": ")[2] for line in error.value.problems] == [
        "has no trials of SWE-Refactor (swe_refactor/trials.jsonl); codetaste report reads such a run",
        "has no trials of SWE-Refactor (swe_refactor/trials.jsonl)",
        "continue it",
        "is no folder; name the folder of a run",
        "no such folder; name the folder of a run",
    ]
