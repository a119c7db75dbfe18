"""Files that were scannable before a patch but not after it; reductive rules stay unmet there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.rules.scan import ScanProblem, ScanResult
    from codetaste.source.patch import Patch

_SYMBOL_TIMEOUT = "fixpointtimeout"
"""Message of the engine when it stops propagating symbols through a huge function: the file did parse."""


@dataclass(frozen=True, slots=True)
class UnscannableFiles:
    """Paths in R∘X̂, sorted, and the paths of the same files in R."""

    after: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()


def find_unscannable(patch: Patch, before: ScanResult, after: ScanResult) -> UnscannableFiles:
    """Return the files that were scanned completely in R but not in R∘X̂ (DESIGN §7).

    They no longer parse, in part or at all, or are skipped as too large. A file that the patch renames is
    compared with its old path. A file that did not parse in R either is not included.
    """
    unscannable_before = {problem.path for problem in before.problems if _is_scan_gap(problem)}
    old_paths = {file.new: file.old for file in patch.files if file.renamed or file.copied}
    found = {
        problem.path: old
        for problem in after.problems
        if _is_scan_gap(problem)
        and (old := old_paths.get(problem.path) or problem.path) in before.scanned
        and old not in unscannable_before
    }
    return UnscannableFiles(tuple(sorted(found)), frozenset(found.values()))


def _is_scan_gap(problem: ScanProblem) -> bool:
    if problem.kind == "parse":
        return "".join(problem.message.partition(":")[0].split()).lower() != _SYMBOL_TIMEOUT
    return problem.kind == "skipped"
