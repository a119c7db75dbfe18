"""The look of all figures: sizes, font, colours, markers and hatches.

Series differ in colour, in lightness and in marker or hatch, so that they can be told apart by readers who
see few colours and in print without any.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import matplotlib as mpl
from matplotlib.font_manager import FontEntry, fontManager

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

FONT_SIZE: Final = 7.5
"""Points; figures are not scaled in a paper, so this is the size in print."""
SMALL: Final = 6.5
SMALLEST: Final = 5.0
"""Of the labels of heat maps, which have a hundred of them."""
DPI: Final = 200
BLACK: Final = "#000000"
GREY: Final = "#767676"
LIGHT: Final = "#d9d9d9"
_FAMILY: Final = "codetaste figures"
"""The DejaVu Sans of matplotlib, which is the same everywhere, unlike a font of that name in the system."""
FONT_FILE: Final = Path(mpl.get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf"
fontManager.ttflist.append(
    FontEntry(fname=str(FONT_FILE), name=_FAMILY, weight=400, size="scalable"),
)


@dataclass(frozen=True, slots=True)
class Series:
    """The look of one series."""

    colour: str
    marker: str
    hatch: str


SERIES: Final = (
    Series("#0072b2", "o", ""),
    Series("#e69f00", "s", "///"),
    Series(BLACK, "^", ""),
    Series("#56b4e9", "D", "..."),
    Series("#d55e00", "v", "\\\\\\"),
    Series("#f0e442", "P", "xx"),
    Series("#009e73", "X", "---"),
    Series("#ffffff", ">", ""),
    Series("#cc79a7", "*", "++"),
    Series("#666666", "<", "ooo"),
)
"""The colours of Okabe and Ito (2008), grey and white; neighbours are far apart in lightness."""

_STYLE: Final[dict[str, Any]] = {
    "font.family": [_FAMILY],
    "font.size": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "legend.fontsize": SMALL,
    "text.parse_math": False,  # an agent named $x$ is no formula
    "text.usetex": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.linewidth": 0.4,
    "grid.color": LIGHT,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.0,
    "ytick.major.size": 2.0,
    "hatch.linewidth": 0.5,
    "lines.linewidth": 0.9,
    "lines.markersize": 3.5,
    "legend.frameon": False,
    "legend.borderaxespad": 0.2,
    "legend.handlelength": 1.4,
    "figure.dpi": DPI,
    "text.hinting": "none",  # so that a layout fits in all formats
    "svg.fonttype": "path",  # equal everywhere, whatever fonts a viewer has
    "svg.hashsalt": "codetaste",
    "pdf.fonttype": 42,  # publishers reject Type 3
    "pdf.compression": 6,
}
_DRAWING_SETTINGS: Final = (
    {"agg", "axes", "boxplot", "contour", "errorbar", "figure", "font", "grid", "hatch", "hist", "image"}
    | {"legend", "lines", "markers", "mathtext", "patch", "path", "pdf", "polaraxes", "savefig", "scatter"}
    | {"svg", "text", "xaxis", "xtick", "yaxis", "ytick"}
)
_PLAIN: Final[dict[str, Any]] = {
    name: value for name, value in mpl.rcParamsDefault.items() if name.partition(".")[0] in _DRAWING_SETTINGS
}
"""The defaults of what a user's own matplotlibrc may have changed."""


def figure_style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn and saved."""
    settings: Any = {**_PLAIN, **_STYLE}
    return mpl.rc_context(settings)
