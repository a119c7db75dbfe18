"""What a part of an answer changes in a type: which member it refactors, and which members are new.

A part has bare members or a class around them. Members that the type has already, with equal code, are no
change: so an answer may repeat the whole class, or show only the new members of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.swe_refactor.answers.code_part import CodePart
    from codetaste.swe_refactor.answers.edit.source_file import SourceFile
    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceType


@dataclass(frozen=True, slots=True)
class NewMember:
    """A member or inner type that ``owner`` does not have; ``methods`` are the names of those in it."""

    owner: SourceType
    text: str
    methods: tuple[str, ...]
    is_type: bool


@dataclass(frozen=True, slots=True)
class PartChange:
    """The text of the refactored member, None without one, and the new members in their order."""

    refactored: str | None
    new: tuple[NewMember, ...]


def find_change(
    part: CodePart,
    file: SourceFile,
    owner: SourceType,
    old: SourceMember | None = None,
    names: Sequence[str] = (),
    gone: SourceMember | None = None,
) -> PartChange:
    """Return what a part changes.

    Args:
        part: code of an answer.
        file: the file that it changes.
        owner: the type of bare members; of a class in the part the one of its name, first the owner.
        old: the member that the part refactors.
        names: the names that the refactored member may have.
        gone: the member that must not be in the part.

    Raises:
        AnswerFault: the part does not fit to the type, or changes something else in it.
    """
    pairs = list(_pairs(part, file, owner))
    refactored = _refactored(part, pairs, owner, old, names) if old else None
    new = list[NewMember]()
    for inside, place in pairs:
        members = part.members if inside is None else inside.members
        for each in members:
            if gone and each.signature == gone.signature and place.code_start == owner.code_start:
                raise AnswerFault(
                    Kind.NOT_INLINED, f"The method {gone.name} must go away; it is still there."
                )
            if each is not refactored and not _is_there(part, each, file, place, old):
                text = part.unit.text(each.start, each.end)
                new.append(NewMember(place, text, (each.name,) if each.is_method else (), is_type=False))
        new += _new_types(part, part.types if inside is None else inside.types, file, place)
    code = part.unit.text(refactored.start, refactored.end) if refactored else None
    return PartChange(code, tuple(new))


def _pairs(
    part: CodePart, file: SourceFile, owner: SourceType
) -> Iterator[tuple[SourceType | None, SourceType]]:
    """Yield types of the part with the type of the file that each stands for; None for bare members."""
    if part.owner is None:
        yield None, owner
        return
    named = [each for each in all_types(file.unit.types) if each.name == part.owner.name]
    if part.owner.name == owner.name:
        named = [owner]
    if len(named) != 1:
        has = ", ".join(each.name for each in file.unit.types)
        raise AnswerFault(
            Kind.WRONG_CLASS, f"The class {part.owner.name} is not one of {file.path}, which has {has}."
        )
    todo = [(part.owner, named[0])]
    while todo:
        inside, place = todo.pop()
        yield inside, place
        inner = {each.name: each for each in place.types}
        todo += [(each, inner[each.name]) for each in inside.types if each.name in inner]


def _new_types(
    part: CodePart, types: tuple[SourceType, ...], file: SourceFile, place: SourceType
) -> Iterator[NewMember]:
    there = {each.name: each for each in place.types}
    for each in types:
        same = there.get(each.name)
        if same is None:
            members = [member for inner in all_types((each,)) for member in inner.members]
            methods = tuple(member.name for member in members if member.is_method)
            yield NewMember(place, part.unit.text(each.start, each.end), methods, is_type=True)
        elif part.owner is None and _code(part, each) != _code_of_file(file, same):
            raise AnswerFault(Kind.CLASS_EXISTS, f"The class {each.name} exists already in {file.path}.")


def _refactored(
    part: CodePart,
    pairs: list[tuple[SourceType | None, SourceType]],
    owner: SourceType,
    old: SourceMember,
    names: Sequence[str],
) -> SourceMember:
    """Return the member of the part that stands for ``old``: of its signature, else by its name."""
    members = [
        each
        for inside, place in pairs
        if place.code_start == owner.code_start
        for each in (part.members if inside is None else inside.members)
        if each.is_method
    ]
    others = {each.signature for each in owner.members} - {old.signature}
    exact = [each for each in members if each.signature == old.signature]
    near = [each for each in members if each.name in {old.name, *names} and each.signature not in others]
    found = exact or near
    if not found:
        raise AnswerFault(
            Kind.METHOD_NAME, f"The answer does not have the method {old.signature} of {owner.name}."
        )
    if len(found) > 1:
        raise AnswerFault(
            Kind.AMBIGUOUS, f"Several methods of the answer can be {old.signature}: keep its parameters."
        )
    return found[0]


def _is_there(
    part: CodePart, member: SourceMember, file: SourceFile, place: SourceType, old: SourceMember | None
) -> bool:
    """Return whether the type has the member, with equal code."""
    code = _code(part, member)
    if not member.name:
        return any(_code_of_file(file, each) == code for each in place.members if not each.name)
    same = [each for each in place.members if each != old and _names_of(each) & _names_of(member)]
    if not same:
        return False
    if any(_code_of_file(file, each) == code for each in same):
        return True
    if part.owner is None and member.is_method:
        raise AnswerFault(Kind.METHOD_EXISTS, f"{place.name} has a method {member.signature} already.")
    raise AnswerFault(Kind.CHANGES_OTHER_CODE, f"The answer changes {member.signature} of {place.name}, too.")


def _names_of(member: SourceMember) -> set[str]:
    return {member.signature} if member.is_method else set(member.name.split(","))


def _code(part: CodePart, node: SourceMember | SourceType) -> bytes:
    return normal_code(part.unit.data[node.code_start : node.end])


def _code_of_file(file: SourceFile, node: SourceMember | SourceType) -> bytes:
    return normal_code(file.unit.data[node.code_start : node.end])
