"""The summary of a run with many jobs fits a screen."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codetaste.errors import Cause
from codetaste.orchestration.budget.cost import BudgetSnapshot
from codetaste.orchestration.job import Outcome, Status
from codetaste.orchestration.shortfall import Shortfall
from codetaste.report.summary import Summary, SummaryLine, render_summary


def lines(count: int) -> Iterator[SummaryLine]:
    """Of ten jobs one failed, two were cut and one left no plan."""
    for number in range(count):
        key = f"job-{number}"
        match number % 10:
            case 3:
                outcome = Outcome(key, Status.FAILED, cause=Cause.FAULT, error="no space")
            case 4:
                outcome = Outcome(key, Status.TIMEOUT, "patch", Cause.DEADLINE, "too late")
            case 5:
                outcome = Outcome(key, Status.DONE, 1, shortfall=Shortfall("max_turns", "all", by_limit=True))
            case 6:
                outcome = Outcome(key, Status.DONE, 1, shortfall=Shortfall("error_planmode", "no plan"))
            case _:
                outcome = Outcome(key, Status.DONE, 1)
        yield SummaryLine(outcome, f"owner__repo-{number} direct by a", "m")


def summary(count: int, *, exit_zero: bool = False) -> Summary:
    return Summary("r", Path("runs/r"), BudgetSnapshot(), 60.0, [*lines(count)], exit_zero=exit_zero)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 35)])
def test_thousand_jobs_fit_a_screen(width: int, height: int) -> None:
    text = render_summary(summary(1000), width)
    shown = text.splitlines()
    assert len(shown) <= height
    assert max(map(len, shown)) <= width
    assert shown[0].startswith("r: 600 of 1000 jobs ended well")
    assert shown[1] == "endings: 600 ok, 100 error planmode, 100 failed, 100 max turns, 100 timeout"
    assert not [line for line in shown if line.startswith("  ok")]
    listed = [line for line in shown if line.startswith(("  bad", "  cut", "  --"))]
    assert listed
    more = next(line for line in shown if line.startswith("  …"))
    assert "600 ok" in more


def test_few_jobs_have_a_line_each() -> None:
    shown = render_summary(summary(10)).splitlines()
    assert [line[2:5].strip() for line in shown[2:12]] == ["ok"] * 3 + ["--", "cut", "cut", "bad"] + [
        "ok"
    ] * 3


def test_exit_code_is_zero_only_if_all_ended_well() -> None:
    assert summary(3).exit_code == 0
    assert summary(5).exit_code == 1
    assert Summary("r", Path(), BudgetSnapshot(), 1.0, [*lines(10)][4:7]).exit_code == 1
    assert Summary("r", Path(), BudgetSnapshot(), 1.0, [*lines(10)][4:7], exit_zero=True).exit_code == 0
    assert summary(10, exit_zero=True).exit_code == 1, "one has no result"
