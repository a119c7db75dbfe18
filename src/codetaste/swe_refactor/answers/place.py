"""The methods of an instance in the text of their file, found by their lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import METHODS, member_of, parse_java, type_around, walk_nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tree_sitter import Node

    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceType, SourceUnit
    from codetaste.swe_refactor.dataset.instance import DiffLocation, RefactoringInstance

TARGET_BEFORE, TARGET_AFTER, OTHER = 0, 1, 2
"""Places of an instance: the method before, the method after, and the extracted or inlined one."""


@dataclass(frozen=True, slots=True)
class MethodPlace:
    """A method in its file, with the type around it."""

    method: SourceMember
    owner: SourceType


def is_inlining(instance: RefactoringInstance) -> bool:
    """Whether a method goes away into another one."""
    return "Inline" in instance.type


def find_method(unit: SourceUnit, lines: DiffLocation, name: str | None = None) -> MethodPlace | None:
    """Return the method at the lines, Javadoc included; ``name`` decides between several."""
    found = []
    for node in _methods_over(unit, lines.start_line, lines.end_line):
        member = member_of(unit, node)
        owner = type_around(unit, node)
        if owner is not None and name in {None, member.name}:
            found.append(MethodPlace(member, owner))
    exact = [each for each in found if unit.line_of(each.method.start) == lines.start_line]
    return next(iter(exact or found), None)


def location(instance: RefactoringInstance, index: int) -> DiffLocation | None:
    """Return a place of an instance, by the numbers above; None if it does not have so many."""
    places = instance.diff_locations
    return places[index] if index < len(places) else None


def caller_name(instance: RefactoringInstance) -> str | None:
    """Return the name of the method that takes the inlined code in; None if the instance does not show it."""
    unit = parse_java(instance.source_code_before_for_whole.encode("utf-8", "replace"))
    lines = location(instance, TARGET_BEFORE)
    place = find_method(unit, lines) if unit and lines else None
    return place.method.name if place else None


def _methods_over(unit: SourceUnit, start_line: int, end_line: int) -> Iterator[Node]:
    """Yield the methods that end in ``end_line`` and begin in the lines, outer ones first."""
    ends = (0, *unit.line_ends, len(unit.data) + 1)
    if not 0 < start_line <= end_line < len(ends):
        return
    begin, last, end = ends[start_line - 1], ends[end_line - 1], ends[end_line]
    for node in walk_nodes(unit.root, lambda node: node.start_byte < end and node.end_byte > begin):
        if node.type in METHODS and begin <= node.start_byte and last < node.end_byte <= end:
            yield node
