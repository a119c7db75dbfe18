"""The live display on terminals of several sizes: jobs can be told apart, and nothing is wider or higher."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from codetaste.orchestration.budget.cost import BudgetSnapshot
from codetaste.orchestration.events import JobFinished, JobQueued, JobStarted, Note, WaitStarted
from codetaste.orchestration.job import Status
from codetaste.orchestration.shortfall import Shortfall
from codetaste.orchestration.wait import Wait, WaitReason
from codetaste.report.live.progress import RunProgress
from codetaste.report.live.terminal import Display, fit_title

INSTANCES = [f"some-long-owner__a-long-repository-name-{number:08d}" for number in range(4)]
GROUPS = [
    f"{track} execute by {agent}"
    for track in ("instructed/plan", "open/plan")
    for agent in ("claude", "codex")
]


def busy_progress() -> RunProgress:
    """Sixty-four trials: a quarter runs, a quarter waits to start, a half has ended in three ways."""
    progress = RunProgress()
    titles = [
        (f"{instance} {group}, attempt {attempt}", group)
        for instance in INSTANCES
        for group in GROUPS
        for attempt in (2, 3, 4, 5)
    ]
    for number, (title, group) in enumerate(titles):
        key = f"job-{number}"
        progress.observe(JobQueued(key, title, "m", (), group))
        if number % 4 == 0:
            continue
        progress.observe(JobStarted(key, 1, lambda: 1234.0))
        if number % 4 == 1:
            progress.observe(Note(key, f"$ command {number}"))
            continue
        shortfall = Shortfall("error_planmode", "no plan") if number % 8 == 3 else None
        status = Status.FAILED if number % 8 == 6 else Status.DONE
        error = "no space" if status is Status.FAILED else ""
        progress.observe(
            JobFinished(key, status, None, error, resumed=False, cost=BudgetSnapshot(), shortfall=shortfall)
        )
    progress.observe(WaitStarted("job-1", Wait(WaitReason.PERMIT, "m")))
    return progress


def draw(progress: RunProgress, width: int, height: int) -> list[str]:
    stream = io.StringIO()
    console = Console(file=stream, width=width, height=height, force_terminal=False)
    console.print(Display(progress, "name of the run"))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 35), (60, 12), (200, 60)])
def test_display_fits_the_terminal_and_has_what_matters(width: int, height: int) -> None:
    lines = draw(busy_progress(), width, height)
    assert len(lines) < height
    assert max(map(len, lines)) <= width
    text = "\n".join(lines)
    assert lines[0].startswith("name of the run")
    assert "16 ok" in text
    assert "16 running" in text
    assert "more running" in text or len([line for line in lines if "-20m34s" in line]) == 16


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 35)])
def test_jobs_differ_and_groups_and_endings_are_named(width: int, height: int) -> None:
    lines = draw(busy_progress(), width, height)
    jobs = [line for line in lines if "-20m34s" in line]
    assert len(jobs) >= 3
    titles = [line.split("-20m34s")[0] for line in jobs]
    assert len({title.rsplit(None, 1)[0] for title in titles}) == len(jobs)
    if width == 80:
        assert all("attempt" in title and " by c" in title for title in titles)
    text = "\n".join(lines)
    assert "waits for a permit of m" in text
    assert "error planmode" in text
    for group in GROUPS:
        assert f"of 16 {group}" in text
    assert "bad " in text


@given(
    st.text(st.characters(codec="ascii", categories=["L", "N", "Pd"]), min_size=1, max_size=60),
    st.integers(20, 100),
)
def test_title_is_no_wider_and_its_end_stays_if_the_instance_can_be_cut(instance: str, width: int) -> None:
    rest = "open by a, attempt 2"
    shown = fit_title(f"{instance} {rest}", width)
    assert len(shown) <= width
    if len(f"{instance} {rest}") <= width:
        assert shown == f"{instance} {rest}"
    elif width >= len(rest) + 9 and len(instance) > 9:
        assert shown.endswith(rest)
        assert shown.startswith("…")
