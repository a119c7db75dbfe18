"""Where a detected refactoring of one of the six types took place: its methods on both sides."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.refactorings.model import CodeRange, Refactoring

_EXTRACT = ("source method declaration before extraction", "source method declaration after extraction")
_EXTRACTED = "extracted method declaration"
_MOVE = ("original method declaration", "moved method declaration")
_INLINE = ("target method declaration before inline", "target method declaration after inline")
_INLINED = "inlined method declaration"


@dataclass(frozen=True, slots=True)
class RefactoringPlaces:
    """The methods of a refactoring.

    Attributes:
        before: the method before; of an inlining the one that takes the code in.
        after: the same one after.
        extracted: the new method, after; of an extraction.
        inlined: the method that goes away, before; of an inlining.
    """

    before: CodeRange
    after: CodeRange
    extracted: CodeRange | None = None
    inlined: CodeRange | None = None

    @property
    def target(self) -> CodeRange:
        """The method that is refactored, before."""
        return self.inlined or self.before


def find_places(refactoring: Refactoring) -> RefactoringPlaces:
    """Return the methods of a refactoring, by RefactoringMiner's words for its ranges.

    Raises:
        SourceError: it is not of one of the six types, or a range is missing.
    """
    left, right = refactoring.left, refactoring.right
    words = {"Extract": _EXTRACT, "Move": _MOVE, "Inline": _INLINE}
    match refactoring.type:
        case "Extract Method" | "Extract And Move Method":
            kind = "Extract"
        case "Inline Method" | "Move And Inline Method":
            kind = "Inline"
        case "Move Method" | "Move And Rename Method":
            kind = "Move"
        case _:
            raise SourceError(f"{refactoring.type!r} is none of the six types")
    before, after = words[kind]
    return RefactoringPlaces(
        _range(left, before, refactoring),
        _range(right, after, refactoring),
        extracted=_range(right, _EXTRACTED, refactoring) if kind == "Extract" else None,
        inlined=_range(left, _INLINED, refactoring) if kind == "Inline" else None,
    )


def _range(ranges: Sequence[CodeRange], words: str, refactoring: Refactoring) -> CodeRange:
    found = next((each for each in ranges if each.description == words), None)
    if found is None:
        raise SourceError(f"{refactoring.type}: RefactoringMiner names no {words}")
    return found
