"""How trials of each agent ended: finish reasons as shares of its trials."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from codetaste.benchmark.layout import FinishReason
from codetaste.figures.drawing.bars import stacked_bars
from codetaste.figures.drawing.style import SERIES
from codetaste.figures.figure import Plot
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.report.tables.scores import TRIALS_COLUMN

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from codetaste.figures.data import FigureData
    from codetaste.report.render.paper import PaperWidth

_OTHER: Final = "other"
_REASONS: Final = {
    FinishReason.SUCCESS: "Success",
    FinishReason.BUDGET_EXCEEDED: "Budget",
    FinishReason.TIMEOUT: "Time-out",
    FinishReason.EXECUTION_ERROR: "Agent's error",
    FinishReason.ERROR: "Other error",
    FinishReason.ERROR_PLANMODE: "Error in plan",
    FinishReason.ERROR_MULTIPLAN: "Error in plans",
    FinishReason.ERROR_JUDGE: "Error of judge",
    FinishReason.UNKNOWN: "Not known",
    _OTHER: "Other",
}
_LOOKS: Final = dict(zip(_REASONS.values(), SERIES, strict=True))


def ending_plots(data: FigureData) -> list[Plot]:
    """Return the plot, if there is a trial."""
    counts: dict[str, Counter[str]] = {agent: Counter() for agent in data.agents}
    for record in data.view.trials.agents:
        reason = record.metadata.finish_reason or FinishReason.UNKNOWN
        counts[record.agent][reason if reason in _REASONS else _OTHER] += 1
    present = [reason for reason in _REASONS if any(each[reason] for each in counts.values())]
    if not present:
        return []
    rows = [
        Row((agent, each.total(), *(each[reason] for reason in present))) for agent, each in counts.items()
    ]
    columns = (
        Column("agent", "Agent"),
        TRIALS_COLUMN,
        *(Column(str(reason), _REASONS[reason], Unit.COUNT) for reason in present),
    )
    title = "Finish reasons of the trials of each agent"
    caption = f"{title}: how agents stopped, not whether their patches are right"
    return [Plot("endings", caption, Table("endings", title, columns, tuple(rows)), draw_endings)]


def draw_endings(table: Table, width: PaperWidth) -> Figure:
    """Draw a bar for each agent, with a part for each finish reason."""
    titles = [column.title for column in table.columns[2:]]
    bars = {
        str(row.cells[0]): [float(cell) for cell in row.cells[2:] if isinstance(cell, int | float)]
        for row in table.rows
    }
    return stacked_bars(bars, {title: _LOOKS[title] for title in titles}, width)
