"""Tables and problems as JSON data, with exact numbers in the units of their columns."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from codetaste.report.statistics.intervals import Interval

if TYPE_CHECKING:
    from codetaste.report.table import Table


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
            {
                "section": row.section or None,
                "cells": [asdict(cell) if isinstance(cell, Interval) else cell for cell in row.cells],
            }
            for row in table.rows
        ],
        "notes": list(table.notes),
    }
