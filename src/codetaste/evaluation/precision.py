"""Precision from lines: what a patch adds and removes, by its own text, against what the rules cover."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.evaluation.exclusions import Exclusions, excluded
from codetaste.evaluation.score import Precision

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.rules.scan import Line, Match
    from codetaste.source.patch import Patch


def covered_lines(matches: Iterable[Match]) -> frozenset[Line]:
    """C_Γ: every line from the first to the last of a match (CodeTaste §3.4), even where it ends in column 1."""
    return frozenset(
        (match.path, line) for match in matches for line in range(match.start_line, match.end_line + 1)
    )


def precision(
    patch: Patch,
    positive: Iterable[Match],
    negative: Iterable[Match],
    exclusions: Exclusions = Exclusions.PUBLISHED,
) -> Precision:
    """Return PREC's four counts (CodeTaste §4.1).

    Args:
        patch: X̂; its own text decides what L⁺ and L⁻ are.
        positive: what Γ⁺ matches in R∘X̂.
        negative: what Γ⁻ matches in R.
        exclusions: which files do not count.
    """
    kept = [file for file in patch.files if not excluded(file, exclusions)]
    added = frozenset((file.new, line) for file in kept if file.new is not None for line in file.added)
    removed = frozenset((file.old, line) for file in kept if file.old is not None for line in file.removed)
    return Precision(
        hits_added=len(added & covered_lines(positive)),
        added=len(added),
        hits_removed=len(removed & covered_lines(negative)),
        removed=len(removed),
    )
