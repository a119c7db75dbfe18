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
    known = {code for data in (developers_file(instance), *before.values()) for code in codes_of(data)}
    items = [item for each in new for item in _items(each, each.types, "")]
    rest = [each for each in items if each.code not in known]
    gained = _words(after.values()) - _words(before.values())
    gained -= Counter(word for each in items for word in each.words)
    words = {*gained}.union(*(each.words for each in items if each.code in known))
    words = words.union(*(_words([code_of(each.unit, member)]) for each in new for member in each.moved))
    while needed := [each for each in rest if _is_needed(each, words)]:
        words = words.union(*(each.words for each in needed))
        rest = [each for each in rest if each not in needed]
    return [f"{each.shown} is new" for each in rest]


def developers_file(instance: RefactoringInstance) -> bytes:
    """Return the file of the method after, as the developers have it."""
    return instance.source_code_after_for_whole.encode("utf-8", "replace")


def codes_of(data: bytes) -> frozenset[bytes]:
    """Return the code of each type and member of a file."""
    unit = parse_java(data)
    if unit is None:
        return frozenset()
    types = list(all_types(unit.types))
    members = (member for each in types for member in each.members)
    return frozenset([*(code_of(unit, each) for each in types), *(code_of(unit, each) for each in members)])


def code_of(unit: SourceUnit, node: SourceMember | SourceType) -> bytes:
    """Return the code of a member or type, without its Javadoc."""
    return normal_code(unit.data[node.code_start : node.end])


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
            name = frozenset([each.name.encode()])
            yield _Item("type", name, f"{owner}{each.name}", code_of(new.unit, each))
            continue
        for member in each.members:
            if not any(member.start <= method.start and method.end <= member.end for method in new.moved):
                names = frozenset(name.encode() for name in member.name.split(",") if name)
                shown = member.signature or member.kind.replace("_", " ")
                yield _Item(member.kind, names, f"{owner}{each.name}.{shown}", code_of(new.unit, member))
        yield from _items(new, each.types, f"{owner}{each.name}.")


def _words(texts: Iterable[bytes]) -> Counter[bytes]:
    return Counter(word for each in texts for word in normal_code(each).split())
