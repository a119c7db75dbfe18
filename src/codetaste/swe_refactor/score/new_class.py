"""What a new class has, to which a method moves: what the method needs, and nothing else.

The developers' class is in no prompt, so an answer designs its own. It may have the moved method, what the
developers' class has or the files had before, what such code names, and constructors that set fields of it.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceType, SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_PLAIN_STATEMENT = re.compile(rb"super \( [\w ,.]*\)|(?:this \. )?([\w$]+) = [\w$]+")
"""The statements that a constructor may have: ``super(name)`` and ``this.name = name``."""


@dataclass(frozen=True, slots=True)
class NewClasses:
    """Types that a file does not have before, with the methods of the refactoring in them."""

    unit: SourceUnit
    types: Sequence[SourceType]
    moved: Sequence[SourceMember]


@dataclass(frozen=True, slots=True)
class _Item:
    """A member of a new class, or a type in it."""

    kind: str
    names: frozenset[bytes]
    shown: str
    code: bytes

    @property
    def words(self) -> list[bytes]:
        return self.code.split()


def needless_members(
    instance: RefactoringInstance,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    new: Sequence[NewClasses],
) -> list[str]:
    """Return one line for each member of new classes that the refactoring does not need. Blocking.

    Args:
        instance: the instance, with the developers' file.
        before: changed files before.
        after: the same files after.
        new: the new classes in them.
    """
    developers = instance.source_code_after_for_whole.encode("utf-8", "replace")
    known = {code for data in (developers, *before.values()) for code in _codes(data)}
    items = [item for each in new for item in _items(each, each.types, "")]
    rest = [each for each in items if each.code not in known]
    gained = _words(after.values()) - _words(before.values())
    gained -= Counter(word for each in items for word in each.words)
    words = {*gained}.union(*(each.words for each in items if each.code in known))
    words = words.union(*(_words([_code(each.unit, member)]) for each in new for member in each.moved))
    while needed := [each for each in rest if _is_needed(each, words)]:
        words = words.union(*(each.words for each in needed))
        rest = [each for each in rest if each not in needed]
    return [f"{each.shown} is new" for each in rest]


def _is_needed(item: _Item, words: set[bytes]) -> bool:
    if item.kind != "constructor_declaration":
        return bool(item.names & words)
    body = item.code.partition(b"{")[2].rstrip(b" }")
    plain = [_PLAIN_STATEMENT.fullmatch(each.strip()) for each in body.split(b";") if each.strip()]
    return all(each is not None and each[1] in {None, *words} for each in plain)


def _items(new: NewClasses, types: Sequence[SourceType], owner: str) -> Iterator[_Item]:
    """Yield members and types, but for the moved methods and the types around them."""
    for each in types:
        if not any(each.start <= method.start and method.end <= each.end for method in new.moved):
            code = normal_code(new.unit.data[each.code_start : each.end])
            yield _Item("type", frozenset([each.name.encode()]), f"{owner}{each.name}", code)
            continue
        for member in each.members:
            if not any(member.start <= method.start and method.end <= member.end for method in new.moved):
                names = frozenset(name.encode() for name in member.name.split(",") if name)
                shown = member.signature or member.kind.replace("_", " ")
                yield _Item(member.kind, names, f"{owner}{each.name}.{shown}", _code(new.unit, member))
        yield from _items(new, each.types, f"{owner}{each.name}.")


def _codes(data: bytes) -> Iterator[bytes]:
    unit = parse_java(data)
    for owner in all_types(unit.types) if unit else ():
        yield normal_code(data[owner.code_start : owner.end])
        for each in owner.members:
            yield normal_code(data[each.code_start : each.end])


def _code(unit: SourceUnit, member: SourceMember) -> bytes:
    return normal_code(unit.data[member.code_start : member.end])


def _words(texts: Iterable[bytes]) -> Counter[bytes]:
    return Counter(word for each in texts for word in normal_code(each).split())
