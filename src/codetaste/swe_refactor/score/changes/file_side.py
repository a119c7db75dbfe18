"""``FileSide``: a Java file before or after an answer, without the methods of the refactoring."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.score.changes.new_class import NewClasses, code_of
from codetaste.swe_refactor.score.changes.rest_of_method import methods_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.refactorings.model import CodeRange
    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceUnit


@dataclass(frozen=True, slots=True)
class _Piece:
    """A member or type: its place, its names, its code."""

    start: int
    end: int
    names: frozenset[bytes]
    code: bytes


class FileSide:
    """A file without the methods of the refactoring."""

    def __init__(self, data: bytes, path: str, places: Sequence[CodeRange]) -> None:
        self.unit = parse_java(data)
        self.methods = list(methods_at(self.unit, path, places)) if self.unit else []
        self.members = dict(_members(self.unit, self.methods)) if self.unit else {}
        self._left_out: list[tuple[int, int]] = []

    def leave_out_new_types(self, before: FileSide) -> Iterator[NewClasses]:
        """Leave out, and yield, types that the other side does not have, with a method of the refactoring."""
        if self.unit is None or before.unit is None:
            return
        known = {each.name for each in all_types(before.unit.types)}
        for each in all_types(self.unit.types):
            if each.name in known or self._is_left_out(each.start, each.end):
                continue
            if any(each.start <= method.start and method.end <= each.end for method in self.methods):
                self._leave_out(each.start, each.end)
                yield NewClasses(self.unit, (each,), self.methods)

    def leave_out_needed(self, before: FileSide, developers: frozenset[bytes]) -> None:
        """Leave out new members and types that the developers have, too, and the refactored code names."""
        if self.unit is None or before.unit is None:
            return
        rest = [each for each in self._new_pieces(before) if each.code in developers]
        words = {word for each in self.methods for word in code_of(self.unit, each).split()}
        while needed := [each for each in rest if each.names & words]:
            for each in needed:
                self._leave_out(each.start, each.end)
                words |= set(each.code.split())
            rest = [each for each in rest if each not in needed]

    def _new_pieces(self, before: FileSide) -> Iterator[_Piece]:
        assert self.unit is not None  # noqa: S101 - the caller has looked
        assert before.unit is not None  # noqa: S101
        known = {each.name for each in all_types(before.unit.types)}
        for each in all_types(self.unit.types):
            if each.name not in known:
                names = frozenset([each.name.encode()])
                yield _Piece(each.start, each.end, names, code_of(self.unit, each))
        for name, (member, code) in self.members.items():
            if name not in before.members:
                yield _Piece(member.start, member.end, frozenset(member.name.encode().split(b",")), code)

    def _leave_out(self, start: int, end: int) -> None:
        self._left_out.append((start, end))
        self.members = {
            name: member
            for name, member in self.members.items()
            if not self._is_left_out(member[0].start, member[0].end)
        }

    def _is_left_out(self, start: int, end: int) -> bool:
        return any(begin <= start and end <= stop for begin, stop in self._left_out)

    def rest(self, adapted: set[str]) -> bytes:
        """Return the code of the file without imports, methods of the refactoring, and adapted members."""
        assert self.unit is not None  # noqa: S101 - the caller has looked
        cut = [(each.start, each.end) for each in self.unit.imports]
        cut += [(each.start, each.end) for each in self.methods] + self._left_out
        cut += [(each.start, each.end) for name, (each, _) in self.members.items() if name in adapted]
        pieces, at = [], 0
        for start, end in sorted(cut):
            pieces.append(self.unit.data[at : max(at, start)])
            at = max(at, end)
        return normal_code(b" ".join([*pieces, self.unit.data[at:]]))


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
