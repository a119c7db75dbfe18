"""The names of figures, formats and widths; nothing here needs matplotlib."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal, TypeAlias, get_args

FigureName = Literal[
    "scores",
    "cost",
    "endings",
    "directions",
    "heatmap",
    "languages",
    "funnel",
    "strategies",
]
FIGURE_NAMES: Final[tuple[FigureName, ...]] = get_args(FigureName)

FigureFormat: TypeAlias = Literal["svg", "png", "pdf"]
FIGURE_FORMATS: Final[tuple[FigureFormat, ...]] = get_args(FigureFormat)


class FigureWidth(StrEnum):
    """The place that a figure or a table fills in a paper of two columns."""

    COLUMN = "column"
    PAGE = "page"

    @property
    def inches(self) -> float:
        """Its width: that of ICML's style; it also fits ACM's, which has 3.33 and 7 inches."""
        return 3.25 if self is FigureWidth.COLUMN else 6.75
