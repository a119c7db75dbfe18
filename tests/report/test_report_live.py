"""What a person reads while a run is under way."""

from __future__ import annotations

import io

from rich.console import Console

from codetaste.orchestration.money import Limits, Snapshot
from codetaste.report.live import Display
from codetaste.report.progress import Progress


def test_the_time_left_counts_what_earlier_sessions_took() -> None:
    progress = Progress(root=Snapshot(limits=Limits(wall_s=3600.0)), earlier_s=1800.0)
    console = Console(file=io.StringIO(), width=200)
    with console.capture() as drawn:
        console.print(Display(progress, "run"))
    assert "30m00s left" in drawn.get()
