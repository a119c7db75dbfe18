"""What an answer changes beside the refactoring: other members, other files.

Comments, white space and imports may change. Callers may be adapted: of the other members, statements may
change that name the method before or after, if it moves, goes away, or has a new name.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.parse import refactored_names
from codetaste.swe_refactor.score.new_class import NewClasses, needless_members
from codetaste.swe_refactor.score.rest_of_method import changed_rests, method_names, methods_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.refactorings.model import CodeRange
    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.enrich.places import RefactoringPlaces

_STATEMENT_ENDS = re.compile(rb"[;{}]")


def find_extra_changes(
    instance: RefactoringInstance,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    places: Sequence[RefactoringPlaces],
) -> list[str]:
    """Return one line for each change outside of the methods of a refactoring. Blocking: milliseconds.

    Args:
        instance: the instance; its refactoring may create a file.
        before: changed files before.
        after: the same files after.
        places: the methods of the refactoring on both sides.
    """
    left = [each for place in places for each in (place.before, place.inlined) if each]
    right = [each for place in places for each in (place.after, place.extracted) if each]
    callers = [] if instance.type.startswith("Extract") else [*left, *right]
    names = method_names(callers)
    lines = changed_rests(instance, before, after, places)
    new = list[NewClasses]()
    for path in sorted({*before, *after}):
        if path not in after:
            lines.append(f"{path} is deleted")
        elif path not in before:
            file = _Side(after[path], path, right)
            if instance.move_file_exist is not False or file.unit is None or not file.methods:
                lines.append(f"{path} is new")
            else:
                new.append(NewClasses(file.unit, file.unit.types, file.methods))
        elif not path.endswith(".java"):
            lines.append(f"{path} is changed")
        else:
            sides = _Side(before[path], path, left), _Side(after[path], path, right)
            if "Move" in instance.type:
                new += sides[1].leave_out_new_types(sides[0])
            lines += [f"{path}: {each}" for each in _compare(*sides, names)]
    return lines + (needless_members(instance, before, after, new) if new else [])


def only_adapts(instance: RefactoringInstance, before: bytes | None, after: bytes | None) -> bool:
    """Return whether a file is changed only where it names the method, before or after. Blocking."""
    if before is None or after is None or instance.type.startswith("Extract"):
        return False
    names = {name.encode() for name in (instance.method_name, *refactored_names(instance))}
    return not list(_compare(_Side(before, "", ()), _Side(after, "", ()), names))


class _Side:
    """A file without the methods of the refactoring."""

    def __init__(self, data: bytes, path: str, places: Sequence[CodeRange]) -> None:
        self.unit = parse_java(data)
        self.methods = list(methods_at(self.unit, path, places)) if self.unit else []
        self.members = dict(_members(self.unit, self.methods)) if self.unit else {}
        self._new_types: list[tuple[int, int]] = []

    def leave_out_new_types(self, before: _Side) -> Iterator[NewClasses]:
        """Leave out, and yield, types that the other side does not have, with a method of the refactoring."""
        if self.unit is None or before.unit is None:
            return
        known = {each.name for each in all_types(before.unit.types)}
        for each in all_types(self.unit.types):
            if each.name in known or self._is_left_out(each.start, each.end):
                continue
            if any(each.start <= method.start and method.end <= each.end for method in self.methods):
                self._new_types.append((each.start, each.end))
                yield NewClasses(self.unit, (each,), self.methods)
        self.members = {
            name: member
            for name, member in self.members.items()
            if not self._is_left_out(member[0].start, member[0].end)
        }

    def _is_left_out(self, start: int, end: int) -> bool:
        return any(begin <= start and end <= stop for begin, stop in self._new_types)

    def rest(self, adapted: set[str]) -> bytes:
        """Return the code of the file without imports, methods of the refactoring, and adapted members."""
        assert self.unit is not None  # noqa: S101 - the caller has looked
        cut = [(each.start, each.end) for each in self.unit.imports]
        cut += [(each.start, each.end) for each in self.methods] + self._new_types
        cut += [(each.start, each.end) for name, (each, _) in self.members.items() if name in adapted]
        pieces, at = [], 0
        for start, end in sorted(cut):
            pieces.append(self.unit.data[at : max(at, start)])
            at = max(at, end)
        return normal_code(b" ".join([*pieces, self.unit.data[at:]]))


def _compare(before: _Side, after: _Side, names: set[bytes]) -> Iterator[str]:
    if before.unit is None or after.unit is None:
        yield "it cannot be read"
        return
    adapted = set[str]()
    named = False
    for name in {**before.members, **after.members}:
        one, other = before.members.get(name), after.members.get(name)
        if one is None or other is None:
            named = True
            yield f"{name} is {'removed' if other is None else 'new'}"
        elif one[1] != other[1]:
            adapted.add(name)
            if not _is_adaption(one[1], other[1], names):
                named = True
                yield f"{name} is changed"
    if not named and before.rest(adapted) != after.rest(adapted):
        yield "code outside of its methods and fields is changed"


def _members(
    unit: SourceUnit, left_out: Sequence[SourceMember]
) -> Iterator[tuple[str, tuple[SourceMember, bytes]]]:
    """Yield the other members by name, each with its code without methods of the refactoring in it."""
    counts = Counter[str]()
    for owner in all_types(unit.types):
        for member in owner.members:
            if any(each.start <= member.start and member.end <= each.end for each in left_out):
                continue
            name = f"{owner.name}.{member.signature if member.is_method else member.name}"
            counts[name] += 1
            code = unit.data[member.code_start : member.end]
            for each in sorted(left_out, key=lambda each: -each.start):
                if member.start <= each.start and each.end <= member.end:
                    begin, end = each.start - member.code_start, each.end - member.code_start
                    code = code[:begin] + code[end:]
            yield (
                (f"{name}" if counts[name] == 1 else f"{name} ({counts[name]})"),
                (member, normal_code(code)),
            )


def _is_adaption(before: bytes, after: bytes, names: set[bytes]) -> bool:
    """Return whether the statements that differ all name the method, before or after."""
    pieces = [Counter(_STATEMENT_ENDS.split(each)) for each in (before, after)]
    different = [*(pieces[0] - pieces[1]), *(pieces[1] - pieces[0])]
    return bool(different) and all(names & set(each.split()) for each in different)
