"""Tables of mining: what each filter of the funnel removed and left, and why (CodeTaste Figure 2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.funnel import FunnelRow, StepYield


def funnel_table(rows: Sequence[FunnelRow]) -> Table:
    """Return the table of filters: commits in and out, their share, cost, the main reason and an example."""
    columns = (
        Column("filter", "Filter"),
        Column("entered", "In", Unit.COUNT),
        Column("removed", "Removed", Unit.COUNT),
        Column("passed", "Left", Unit.COUNT),
        Column("share", "Left", Unit.FRACTION),
        Column("unknown", "not known", Unit.COUNT),
        Column("cost_usd", "Cost", Unit.USD),
        Column("reason", "main reason", heading="of the removed"),
        Column("example", "example", heading="of the removed"),
    )
    return Table(
        "funnel",
        "commits at each filter",
        columns,
        tuple(
            Row(
                (
                    row.filter,
                    row.entered,
                    row.removed,
                    row.passed,
                    row.passed / row.entered if row.entered else None,
                    row.unknown,
                    float(row.cost_usd),
                    row.reasons[0][0] if row.reasons else "",
                    row.examples[0] if row.examples else "",
                ),
                row.stage.value,
            )
            for row in rows
        ),
        ("not known: the source does not have the number; these commits are left in",),
        section="stage",
    )


def steps_table(steps: Sequence[StepYield]) -> Table:
    """Return the table of steps from commits to instances: yield and cost of each."""
    columns = (
        Column("step", "Step"),
        Column("entered", "In", Unit.COUNT),
        Column("removed", "Removed", Unit.COUNT),
        Column("passed", "Left", Unit.COUNT),
        Column("share", "Left", Unit.FRACTION),
        Column("pending", "not done", Unit.COUNT),
        Column("cost_usd", "Cost", Unit.USD),
    )
    return Table(
        "steps",
        "from commits to instances",
        columns,
        tuple(
            Row(
                (
                    each.step,
                    each.entered,
                    each.removed,
                    each.passed,
                    each.passed / each.entered if each.entered else None,
                    each.pending,
                    float(each.cost_usd),
                )
            )
            for each in steps
        ),
        ("not done: no result yet; the same command continues it",) if any(x.pending for x in steps) else (),
    )


def funnel_reasons_table(rows: Sequence[FunnelRow]) -> Table:
    """Return the table of all reasons of each filter, the most frequent first."""
    columns = (
        Column("filter", "Filter"),
        Column("reason", "Reason (N: a number)"),
        Column("commits", "Commits", Unit.COUNT),
        Column("share", "of the removed", Unit.FRACTION),
    )
    return Table(
        "funnel-reasons",
        "why commits were removed",
        columns,
        tuple(
            Row((row.filter, reason, number, number / row.removed if row.removed else None), row.stage.value)
            for row in rows
            for reason, number in row.reasons
        ),
        section="stage",
    )
