"""The bytes of a drawn figure: no date, no version and no random id is in them."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Final

from codetaste.figures.drawing.style import DPI

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from codetaste.figures.names import FigureFormat

_NO_METADATA: Final[Mapping[FigureFormat, Mapping[str, None]]] = {
    "svg": dict.fromkeys(("Date", "Creator", "Format", "Type")),
    "png": {"Software": None},
    "pdf": dict.fromkeys(("Creator", "Producer", "CreationDate")),
}


def export_figure(figure: Figure, format_: FigureFormat) -> bytes:
    """Return a figure as a file, equal whenever the figure is; to be called in ``figure_style()``."""
    buffer = BytesIO()
    figure.savefig(buffer, format=format_, dpi=DPI, metadata=dict(_NO_METADATA[format_]))
    return buffer.getvalue()
