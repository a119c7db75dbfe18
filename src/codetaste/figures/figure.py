"""A figure before it is drawn, the files that come of it, and what cannot be drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.figure import Figure

    from codetaste.figures.names import FigureName
    from codetaste.report.render.paper import PaperWidth
    from codetaste.report.table import Table


@dataclass(frozen=True, slots=True)
class Plot:
    """The numbers of a figure and how they are drawn.

    Attributes:
        name: the stem of its files, such as "scores-open".
        title: what it shows, in one line, for readers who do not see it.
        table: all its numbers; nothing else is drawn.
        draw: draws the table in a width.
    """

    name: str
    title: str
    table: Table
    draw: Callable[[Table, PaperWidth], Figure]


@dataclass(frozen=True, slots=True)
class FigureFile:
    """One file of a figure: a drawing, or its numbers as CSV.

    Attributes:
        name: the stem of its name.
        title: what the figure shows, in one line.
        format: the suffix of its name: "svg", "png", "pdf" or "csv".
        content: its bytes, equal whenever the results are.
    """

    name: str
    title: str
    format: str
    content: bytes

    @property
    def file_name(self) -> str:
        """Its name in a folder."""
        return f"{self.name}.{self.format}"


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that cannot be drawn from these results, and why in one line."""

    name: FigureName
    reason: str
