"""The summary at the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.orchestration.budget.cost import BudgetSnapshot
from codetaste.orchestration.job import Outcome, Status
from codetaste.report.summary import Summary, SummaryLine, render_comparison, render_summary
from codetaste.report.tables import comparison
from support.evaluation.records import several


@pytest.mark.parametrize("width", [None, 60, 200])
def test_comparison_fits_terminal_width_with_any_job_names(width: int | None) -> None:
    compared = comparison.compare([*several("a", [0.25, 0.5]), *several("b", [0.5, 1.0], lane="open/plan")])
    lines = [SummaryLine(Outcome("one", Status.DONE), "a job", "a lane")]
    summary = Summary("run", Path("runs/run"), BudgetSnapshot(), 1.0, lines, comparison=compared)
    assert render_summary(summary, width).endswith(render_comparison(compared, width))
    assert render_comparison(compared, 60) != render_comparison(compared, 200)
