"""Which refactorings two changes of the same code have in common: equal in type and element.

The element is the code before the change that is refactored, such as the method from which another one is
extracted. It is identified by its place, since both changes start from the same files.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.refactorings.model import CodeRange, Refactoring


class Author(StrEnum):
    """Who did a refactoring."""

    HUMAN = "human"
    AGENT = "agent"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class ComparedRefactoring:
    """A refactoring that the human, the agent, or both did.

    Attributes:
        by: who did it.
        type: as RefactoringMiner spells it.
        path: the file of the element.
        element: the code that is refactored, as RefactoringMiner describes it.
        same_result: whether both made the same new element of it, such as a method of the same name.
        human: RefactoringMiner's sentence about the human's; None if it is the agent's only.
        agent: the sentence about the agent's; None if it is the human's only.
        human_pure: PurityChecker's verdict, None without one.
        agent_pure: PurityChecker's verdict, None without one.
    """

    by: Author
    type: str
    path: str
    element: str
    same_result: bool
    human: str | None
    agent: str | None
    human_pure: bool | None
    agent_pure: bool | None


def compare_refactorings(
    human: Iterable[Refactoring], agent: Iterable[Refactoring]
) -> tuple[ComparedRefactoring, ...]:
    """Pair the refactorings of two changes of the same code; each belongs to one pair at most.

    Returns:
        the human's in their order, paired or not, then the agent's that are in no pair.
    """
    available: dict[tuple[object, ...], list[Refactoring]] = defaultdict(list)
    for each in agent:
        available[_identity(each)].append(each)
    compared = []
    for each in human:
        candidates = available[_identity(each)]
        partner = _take_partner(each, candidates) if candidates else None
        compared.append(_compared(each, partner))
    rest = [each for candidates in available.values() for each in candidates]
    return (*compared, *(_compared(None, each) for each in rest))


def _take_partner(human: Refactoring, candidates: list[Refactoring]) -> Refactoring:
    """Remove one of ``candidates`` and return it: one with the same result, if there is one."""
    same = [each for each in candidates if _result(each) == _result(human)]
    partner = (same or candidates)[0]
    candidates.remove(partner)
    return partner


def _compared(human: Refactoring | None, agent: Refactoring | None) -> ComparedRefactoring:
    one = human or agent
    assert one is not None  # noqa: S101 - the caller has one
    by = Author.BOTH if human and agent else Author.HUMAN if human else Author.AGENT
    element = _element(one)
    return ComparedRefactoring(
        by=by,
        type=one.type,
        path=element.path if element else "",
        element=(element.code_element or element.description) if element else one.description,
        same_result=human is not None and agent is not None and _result(human) == _result(agent),
        human=human.description if human else None,
        agent=agent.description if agent else None,
        human_pure=human.purity.pure if human and human.purity else None,
        agent_pure=agent.purity.pure if agent and agent.purity else None,
    )


def _identity(refactoring: Refactoring) -> tuple[object, ...]:
    element = _element(refactoring)
    if element is None:
        return refactoring.type, refactoring.description
    lines = element.start_line, element.start_column, element.end_line, element.end_column
    return refactoring.type, bool(refactoring.left), element.path, *lines


def _element(refactoring: Refactoring) -> CodeRange | None:
    """Return the refactored code: before the change, or after it where there is none before."""
    return _first(refactoring.left) or _first(refactoring.right)


def _result(refactoring: Refactoring) -> str:
    """Return the new element; for one that only removes code, its sentence."""
    result = _first(refactoring.right)
    return (result.code_element if result else None) or refactoring.description


def _first(ranges: Sequence[CodeRange]) -> CodeRange | None:
    named = (each for each in ranges if each.code_element is not None)
    return next(named, ranges[0] if ranges else None)
