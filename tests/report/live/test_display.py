"""The live display of a run."""

from __future__ import annotations

import io
from decimal import Decimal

from rich.console import Console

from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.events import MoneyChanged
from codetaste.report.live.progress import RunProgress
from codetaste.report.live.terminal import Display


def test_time_left_subtracts_earlier_sessions() -> None:
    progress = RunProgress(root=BudgetSnapshot(limits=BudgetLimits(wall_s=3600.0)), earlier_wall_s=1800.0)
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as drawn:
        console.print(Display(progress, "run"))
    assert "30m00s left" in drawn.get()


def test_live_display_shows_permits_and_changed_limit() -> None:
    progress = RunProgress(limiter_summary=lambda: ["m: 2 of 4 in flight (of 16 at best), 3 waiting\x1b[31m"])
    limits = BudgetLimits(usd=Decimal(3))
    progress.observe(MoneyChanged("", BudgetSnapshot(limits=limits), BudgetSnapshot(limits=limits)))
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as drawn:
        console.print(Display(progress, "run"))
    assert "m: 2 of 4 in flight (of 16 at best), 3 waiting" in drawn.get()
    assert "of $3.00" in drawn.get()
    assert "\x1b[31m" not in drawn.get()
    assert progress.jobs == {}
