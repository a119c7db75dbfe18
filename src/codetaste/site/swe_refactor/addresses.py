"""Addresses of the pages of SWE-Refactor."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.site.html.address import file_name

if TYPE_CHECKING:
    from codetaste.swe_refactor.report.trial_row import TrialRow

COMPARISON = "swe-refactor/index.html"


def answer_address(row: TrialRow) -> str:
    """Return the address of a trial's page; ``#answer``, ``#tests`` and ``#conversation`` are its parts."""
    names = (row.run or "run", row.strategy, row.model, row.instance, str(row.attempt))
    return "/".join(["swe-refactor/trials", *map(file_name, names), "index.html"])
