"""Files that the rules could look into before a patch and cannot any more: they do not count as cleaned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.rules.scan import Problem, Scan
    from codetaste.source.patch import Patch

_GIVEN_UP = "fixpointtimeout"
"""What the engine says where it gave up propagating symbols through a huge function: the file did parse."""


@dataclass(frozen=True, slots=True)
class LostSight:
    """Paths in R∘X̂, sorted, and those of the same files in R."""

    after: tuple[str, ...] = ()
    before: frozenset[str] = frozenset()


def lost_sight(patch: Patch, before: Scan, after: Scan) -> LostSight:
    """Return the files that were scanned in R and of which R∘X̂ has no whole picture (DESIGN §7).

    They do not parse any more, in part or at all, or are skipped (too large). A file that the patch renames
    is the file that it was. Where it did not parse in R either, nothing is lost.
    """
    blind = {problem.path for problem in before.problems if _hides(problem)}
    was = {file.new: file.old for file in patch.files if file.renamed or file.copied}
    lost = {
        problem.path: old
        for problem in after.problems
        if _hides(problem)
        and (old := was.get(problem.path) or problem.path) in before.scanned
        and old not in blind
    }
    return LostSight(tuple(sorted(lost)), frozenset(lost.values()))


def _hides(problem: Problem) -> bool:
    if problem.kind == "parse":
        return "".join(problem.message.partition(":")[0].split()).lower() != _GIVEN_UP
    return problem.kind == "skipped"
