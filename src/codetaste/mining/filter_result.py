"""What one filter says of one commit: its measured number, its bound, and whether the commit passed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Stage(StrEnum):
    """The stages of the funnel, in order (CodeTaste §3.1 and Figure 2)."""

    SOURCE = "source"
    KEYWORDS = "keywords"
    """Stage 1: stars, files and keywords."""
    PREFILTER = "prefilter"
    """Stage 2: reachable, enough edits of code, no outlier, not repetitive."""
    SCORING = "scoring"
    """Stage 3: scores of a model."""


@dataclass(frozen=True, slots=True)
class FilterResult:
    """One filter at one commit.

    Attributes:
        stage: the stage that the filter belongs to.
        filter: its name, such as ``stars``; a row of the funnel.
        passed: False drops the commit.
        value: what was measured, as it is shown.
        bound: what is required, as it is shown.
        reason: why the commit is dropped, one line; "" if it passed.
    """

    stage: Stage
    filter: str
    passed: bool
    value: str
    bound: str
    reason: str = ""
