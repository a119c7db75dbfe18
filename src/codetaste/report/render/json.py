"""Tables and problems as JSON data, with exact numbers in the units of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.report.statistics.intervals import Interval, interval_to_json

if TYPE_CHECKING:
    from codetaste.evaluation.trials.records import ReadProblem
    from codetaste.report.table import Cell, Table


def table_to_json(table: Table) -> dict[str, Any]:
    """Return a table as JSON data; a cell is text, a number, null, or an interval's JSON data."""
    return {
        "name": table.name,
        "title": table.title,
        "aggregation": table.aggregation or None,
        "columns": [
            {"name": each.name, "title": each.title, "heading": each.heading or None, "unit": str(each.unit)}
            for each in table.columns
        ],
        "rows": [
            {"section": row.section or None, "cells": [_cell(cell) for cell in row.cells]}
            for row in table.rows
        ],
        "notes": list(table.notes),
    }


def problem_to_json(problem: ReadProblem) -> dict[str, str]:
    """Return a problem of reading records as JSON data."""
    return {"kind": str(problem.kind), "location": problem.location, "text": problem.text}


def _cell(cell: Cell) -> Any:  # noqa: ANN401 - JSON
    return interval_to_json(cell) if isinstance(cell, Interval) else cell
