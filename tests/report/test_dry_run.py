"""The text of a dry run fits a screen, and says what was done, what would be done again, and why."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.llm.price import Price
from codetaste.llm.price_table import PriceEntry
from codetaste.report.dry_run import (
    DryRun,
    EarlierWork,
    PlannedJob,
    PlannedTrial,
    WorkState,
    render_dry_run,
)

KEY = "infer/claude-code-sonnet/open/multiplan/99designs__gqlgen-a9965fbd/execute"
AGAIN = EarlierWork(WorkState.AGAIN, ("agents.claude-code-sonnet.options", "prompts/infer.md"), Decimal(2))
STATES = (
    EarlierWork(),
    EarlierWork(WorkState.DONE, (), Decimal("1.5")),
    AGAIN,
    EarlierWork(WorkState.CUT, (), Decimal(1)),
)


def key(number: int) -> str:
    return KEY.replace("99designs", f"{number}designs")


def plan(count: int, *, begun: bool = True, models: int = 2, limits: int = 1) -> DryRun:
    """A run of ``count`` jobs of up to 30 agents."""
    jobs = [
        PlannedJob(
            key(number),
            ("sources/x",),
            "m",
            f"open/multiplan execute by agent-{number % 30}",
            STATES[number % len(STATES)] if begun else EarlierWork(),
        )
        for number in range(count)
    ]
    trials = [PlannedTrial(job.key, Decimal(1 + number % limits), 60.0) for number, job in enumerate(jobs)]
    price = Price(input=Decimal(3), output=Decimal(15))
    return DryRun(
        (PlannedJob("sources/x", (), ""), *jobs),
        Decimal(100),
        Decimal(50),
        {f"sonnet-{number}": PriceEntry(price, "config") for number in range(models)},
        tuple(trials),
        Path("runs/r") if begun else None,
    )


@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("count", [1, 4, 9, 12, 1000])
@pytest.mark.parametrize(("width", "height", "models", "limits"), [(80, 24, 2, 1), (120, 35, 9, 9)])
def test_dry_run_fits_a_screen(
    width: int, height: int, models: int, limits: int, count: int, begun: bool
) -> None:
    planned = plan(count, begun=begun, models=models, limits=limits)
    lines = render_dry_run(planned, width, as_json=False).splitlines()
    assert len(lines) < height
    assert [line for line in lines if len(line) > width and KEY[-20:] not in line] == []


def test_each_of_few_jobs_has_its_work_its_cost_and_the_changed_inputs() -> None:
    text = render_dry_run(plan(4), 100, as_json=False)
    assert text.startswith(
        f"""\
work   spent  job
new    $0.00  {key(0)}
done   $1.50  {key(1)}
again  $2.00  {key(2)}
              changed: agents.claude-code-sonnet.options, prompts/infer.md
cut    $1.00  {key(3)}
besides 1 job without a model (sources 1)
"""
    )
    assert text.endswith(
        "4 jobs call a model (1 new, 1 cut, 1 done, 1 again); all together they can cost $50.00 at most,\n"
        "    $4.50 of it spent; 4 trials work 4m00s at most, one after the other"
    )


def test_many_jobs_are_counted_by_group_and_changed_inputs_are_named_once() -> None:
    text = render_dry_run(plan(1000), None, as_json=False)
    head, first, *rest = text.splitlines()
    assert head.split() == ["jobs", "all", "new", "cut", "done", "again", "spent"]
    assert first.startswith("open/multiplan execute by agent-0")
    assert " ".join(rest[9].split()) == "… and 20 more groups 660 165 165 165 165 $742.50"
    assert "changed since: agents.claude-code-sonnet.options (250 jobs), prompts/infer.md (250 jobs)" in text


def test_new_run_has_no_column_of_costs() -> None:
    text = render_dry_run(plan(2, begun=False), None, as_json=False)
    assert text.startswith(f"work  job\nnew   {key(0)}\n")
    assert "2 jobs call a model; all together they can cost $50.00 at most; 2 trials" in text
