"""Counts behind precision: the lines a patch removes and adds, and how many of them rule matches cover."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.evaluation.metrics import PrecisionCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.rules.scan.model import Match
    from codetaste.source.patch.model import FileDiff, Patch


EXCLUDED_NAMES = frozenset({
    ".venv", "venv", "__pycache__", ".pytest_cache", ".mypy_cache", ".tox", ".ruff_cache", "node_modules",
    "dist", "build", ".next", ".nuxt", "target", ".gradle", "out", "bin", "obj", "vendor", ".cache",
    "coverage", ".cargo-home", "package-lock.json",
})  # fmt: skip
"""Names of folders and files that the published harness leaves out of L⁺, L⁻ and so of precision."""


class Exclusions(StrEnum):
    """Files left out of precision: those that the published harness leaves out, or none."""

    PUBLISHED = "published"
    NONE = "none"


def is_excluded(file: FileDiff, exclusions: Exclusions = Exclusions.PUBLISHED) -> bool:
    """Whether changes of ``file`` do not count: a part of its old or new path is in ``EXCLUDED_NAMES``."""
    if exclusions is Exclusions.NONE:
        return False
    return any(
        path is not None and not EXCLUDED_NAMES.isdisjoint(path.replace("\\", "/").split("/"))
        for path in {file.old, file.new}
    )


CoveredLines = dict[str, set[int]]
"""C_Γ: line numbers by path."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """L⁻ and L⁺ of the files that count: ranges of line numbers by path, in R and in R∘X̂."""

    removed: Mapping[str, Sequence[range]]
    added: Mapping[str, Sequence[range]]

    @property
    def counts(self) -> tuple[int, int]:
        """|L⁺| and |L⁻|."""
        return _size(self.added), _size(self.removed)


def changed_lines(patch: Patch, exclusions: Exclusions = Exclusions.PUBLISHED) -> ChangedLines:
    """Return the lines that ``patch`` removes and adds (CodeTaste §2.1) in files that are not excluded."""
    counted = [file for file in patch.files if not is_excluded(file, exclusions)]
    return ChangedLines(
        _by_path((file.old, file.removed_runs) for file in counted),
        _by_path((file.new, file.added_runs) for file in counted),
    )


def covered_lines(matches: Iterable[Match]) -> CoveredLines:
    """C_Γ: each line from the first to the last of a match (CodeTaste §3.4), even if it ends in column 1."""
    covered: CoveredLines = {}
    for match in matches:
        covered.setdefault(match.path, set()).update(range(match.start_line, match.end_line + 1))
    return covered


def precision_counts(lines: ChangedLines, positive: CoveredLines, negative: CoveredLines) -> PrecisionCounts:
    """Return the four counts behind PREC (CodeTaste §4.1).

    Args:
        lines: L⁻ and L⁺.
        positive: lines that Γ⁺ covers in R∘X̂.
        negative: lines that Γ⁻ covers in R.
    """
    added, removed = lines.counts
    return PrecisionCounts(
        hits_added=_hits(lines.added, positive),
        added=added,
        hits_removed=_hits(lines.removed, negative),
        removed=removed,
    )


def _by_path(changes: Iterable[tuple[str | None, Sequence[range]]]) -> dict[str, list[range]]:
    """Merge the ranges of each path; a line that a patch changes twice counts once."""
    found: dict[str, list[range]] = {}
    for path, runs in changes:
        if path is None or not runs:
            continue
        if path not in found:
            found[path] = list(runs)
            continue
        merged: list[range] = []
        for run in sorted([*found[path], *runs], key=lambda run: run.start):
            if merged and run.start <= merged[-1].stop:
                merged[-1] = range(merged[-1].start, max(merged[-1].stop, run.stop))
            else:
                merged.append(run)
        found[path] = merged
    return found


def _size(lines: Mapping[str, Sequence[range]]) -> int:
    return sum(len(run) for runs in lines.values() for run in runs)


def _hits(lines: Mapping[str, Sequence[range]], covered: CoveredLines) -> int:
    return sum(
        sum(line in covered_here for run in runs for line in run)
        for path, runs in lines.items()
        if (covered_here := covered.get(path))
    )
