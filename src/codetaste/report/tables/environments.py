"""Tables of environments: how far those of a batch came, at which cost, and why the others failed."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, Literal, get_args

from codetaste.environment.levels import Level
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.environment.record import EnvironmentDetails, EnvironmentRecord
    from codetaste.report.table import Cell

EnvironmentTableName = Literal["environments", "failed-environments"]
ENVIRONMENT_TABLES: tuple[EnvironmentTableName, ...] = get_args(EnvironmentTableName)
"""Made by default; those without data are left out."""
_LEVELS = tuple(sorted(Level, reverse=True))


def environment_tables(records: Sequence[EnvironmentRecord], names: Sequence[str]) -> list[Table]:
    """Make the tables ``names`` of environments; a table without data is left out."""
    made = {"environments": _yield_table, "failed-environments": _failures}
    tables = [made[name](records) for name in names if name in made]
    return [table for table in tables if table.rows]


def _yield_table(records: Sequence[EnvironmentRecord]) -> Table:
    details = [each.details for each in records if each.details is not None]
    columns = (
        Column("level", "Level"),
        Column("instances", "Instances", Unit.COUNT),
        Column("share", "Share", Unit.FRACTION),
        Column("existing", "by existing scripts", Unit.COUNT),
        Column("agent", "by an agent", Unit.COUNT),
        Column("cost_usd", "Cost", Unit.USD),
        Column("cost_median_usd", "median", Unit.USD),
        Column("duration_s", "median time", Unit.SECONDS),
    )
    groups = {level.value: [each for each in details if each.level is level] for level in _LEVELS}
    groups = {name: chosen for name, chosen in groups.items() if chosen}
    if details:
        groups |= {"proven": [each for each in details if each.level.is_proven], "all": details}
    rows = [Row(_cells(name, chosen, len(details))) for name, chosen in groups.items()]
    notes = ("proven: all gates passed; with level offline also without a network",)
    return Table("environments", "environments by the level that they reached", columns, tuple(rows), notes)


def _cells(name: str, chosen: Sequence[EnvironmentDetails], of: int) -> tuple[Cell, ...]:
    costs = [float(each.cost_usd or 0) for each in chosen]
    by_agent = sum(each.attempts > 0 for each in chosen)
    return (
        name,
        len(chosen),
        len(chosen) / of,
        len(chosen) - by_agent,
        by_agent,
        sum(costs),
        median(costs) if costs else None,
        median(each.duration_s for each in chosen) if chosen else None,
    )


def _failures(records: Sequence[EnvironmentRecord]) -> Table:
    columns = (
        Column("instance", "Instance"),
        Column("level", "Level"),
        Column("cost_usd", "Cost", Unit.USD),
        Column("reason", "Failed gate"),
    )
    rows: list[Row] = []
    for record in records:
        details, of = record.details, record.metadata
        if details is not None and not details.level.is_proven:
            name = f"{of.owner}__{of.repo}-{of.base_hash[:8]}"
            cost = float(details.cost_usd or 0)
            rows.append(Row((name, details.level.value, cost, of.reason_no_execution_environment)))
    return Table("failed-environments", "environments that failed", columns, tuple(rows))
