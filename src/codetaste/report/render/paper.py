"""The two widths of a paper in two columns, for tables and figures."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

POINTS_PER_INCH: Final = 72.27
"""TeX's points, which are a little smaller than those of PDF."""
PAGE_HEIGHT: Final = 8.8
"""Inches that a table or figure may take: ICML's text is 9 inches high."""


class PaperWidth(StrEnum):
    """The place that a figure or a table fills in a paper of two columns."""

    COLUMN = "column"
    PAGE = "page"

    @property
    def inches(self) -> float:
        """Its width: that of ICML's style; it also fits ACM's, which has 3.33 and 7 inches."""
        return 3.25 if self is PaperWidth.COLUMN else 6.75
