"""Refactorings as data: what was detected between two versions of code, where, and whether it is pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class CodeRange:
    """A place that takes part in a refactoring; lines and columns count from 1.

    The range of a method includes its documentation comment.

    Attributes:
        path: the file.
        element_kind: RefactoringMiner's name of the kind of code, such as "METHOD_DECLARATION".
        description: its part in the refactoring, such as "extracted method declaration".
        code_element: the signature or text of the element, None for a statement.
    """

    path: str
    start_line: int
    end_line: int
    start_column: int
    end_column: int
    element_kind: str
    description: str
    code_element: str | None


@dataclass(frozen=True, slots=True)
class Purity:
    """PurityChecker's verdict: whether nothing but the refactoring was changed in the code of it.

    Attributes:
        pure: the verdict.
        description: why.
        comment: the kind of change, such as "Identical statements"; None if there is none.
        mapping_state: its number for the kind of mapping between the statements.
    """

    pure: bool
    description: str
    comment: str | None
    mapping_state: int


@dataclass(frozen=True, slots=True)
class Refactoring:
    """One refactoring.

    Attributes:
        type: as RefactoringMiner spells it, such as "Extract Method".
        description: the sentence that it prints.
        left: the places before.
        right: the places after.
        purity: None if it was not asked for, or PurityChecker does not judge the type.
    """

    type: str
    description: str
    left: tuple[CodeRange, ...]
    right: tuple[CodeRange, ...]
    purity: Purity | None = None


@dataclass(frozen=True, slots=True)
class Detection:
    """The answer to one request.

    Attributes:
        commit: the commit, None for directories and contents.
        refactorings: in RefactoringMiner's order.
        version: its release.
        parents: number of parents of the commit: the first one was compared, 0 means that there is none.
        purity_error: why some purity is unknown, "" if PurityChecker had no error.
    """

    commit: str | None
    refactorings: tuple[Refactoring, ...]
    version: str
    parents: int | None = None
    purity_error: str = ""


def detection_to_json(detection: Detection) -> dict[str, Any]:
    """Return the detection as JSON data, with the names of its attributes."""
    return asdict(detection)


def detection_from_json(data: dict[str, Any]) -> Detection:
    """Return the detection of ``detection_to_json``.

    Raises:
        LookupError, TypeError: it is not of that shape.
    """
    found = tuple(refactoring_from_json(each) for each in data["refactorings"])
    return Detection(data["commit"], found, data["version"], data["parents"], data["purity_error"] or "")


def refactoring_from_json(data: dict[str, Any]) -> Refactoring:
    """Return a refactoring of the shim's answer, or of ``detection_to_json``.

    Raises:
        LookupError, TypeError: it is not of that shape.
    """
    left, right = (tuple(CodeRange(**each) for each in data[side]) for side in ("left", "right"))
    purity = data.get("purity")
    verdict = Purity(**purity) if purity else None
    return Refactoring(data["type"], data["description"], left, right, verdict)
