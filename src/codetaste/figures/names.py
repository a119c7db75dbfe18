"""The names of figures and of their formats; nothing here needs matplotlib."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias, get_args

FigureName = Literal[
    "scores",
    "cost",
    "endings",
    "directions",
    "rules",
    "guesses",
    "heatmap",
    "languages",
    "funnel",
    "strategies",
]
FIGURE_NAMES: Final[tuple[FigureName, ...]] = get_args(FigureName)

FigureFormat: TypeAlias = Literal["svg", "png", "pdf"]
FIGURE_FORMATS: Final[tuple[FigureFormat, ...]] = get_args(FigureFormat)
