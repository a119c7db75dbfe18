"""What is changed in a method beside the code that is extracted from it, or inlined into it.

PurityChecker judges the extracted or inlined code alone. Here a method is its head and its statements, texts
between semicolons and braces. What the developers changed, too, may change.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import normal_code, parse_java
from codetaste.swe_refactor.answers.place import find_method
from codetaste.swe_refactor.dataset.instance import DiffLocation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from codetaste.refactorings.model import CodeRange
    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.enrich.places import RefactoringPlaces

_NAME = re.compile(r"([\w$]+)\(")
_STATEMENT_ENDS = re.compile(rb"[;{}]")
_SIMPLE = re.compile(rb"[a-zA-Z_$][\w$]*(?: (?:[a-zA-Z_$][\w$]*|[.<>?,\[\]]))*")
"""A statement of names alone, such as ``return sum`` or ``List < String > names``."""
_DECLARATION = re.compile(rb"(?:final )?[a-zA-Z_$][\w$.<>?,\[\] ]* [a-zA-Z_$][\w$]* = [\w$]+")
"""A variable that stands for a parameter of an inlined method, such as ``int n = count``."""
_CALL = b"(the call)"


def changed_rests(
    instance: RefactoringInstance,
    before: Mapping[str, bytes],
    after: Mapping[str, bytes],
    places: Sequence[RefactoringPlaces],
) -> list[str]:
    """Return a line for each change of a method beside its extraction or inlining; none for moves.

    Args:
        instance: the instance, with the developers' method.
        before: files before.
        after: files after.
        places: the methods of the refactoring on both sides.
    """
    developers = normal_code(instance.source_code_after_refactoring.encode("utf-8", "replace"))
    lines = list[str]()
    for place in places:
        same = [each for each in places if each.before == place.before]
        new = [each.extracted for each in same if each.extracted is not None]
        gone = [each.inlined for each in same if each.inlined is not None]
        if new or gone:
            calls = method_names([*new, *gone])
            old, now = _code(before, place.before), _code(after, place.after)
            others = [_Method(_code(after, each), calls) for each in new]
            others += [_Method(_code(before, each), calls) for each in gone]
            faults = _faults(
                _Method(old, calls),
                _Method(now, calls),
                others,
                _Method(developers, calls),
                is_extraction=bool(new),
            )
            name = place.after.code_element or "the method"
            lines += [f"{place.after.path}: {fault} of {name}" for fault in faults]
    return list(dict.fromkeys(lines))


def methods_at(unit: SourceUnit, path: str, places: Iterable[CodeRange]) -> Iterator[SourceMember]:
    """Yield the methods at those places that are in a file."""
    for each in places:
        if each.path != path:
            continue
        lines = DiffLocation(
            filePath=path, startLine=each.start_line, endLine=each.end_line, startColumn=0, endColumn=0
        )
        name = _NAME.search(each.code_element or "")
        found = find_method(unit, lines, name[1] if name else None)
        if found:
            yield found.method


def method_names(places: Iterable[CodeRange]) -> set[bytes]:
    """Return the simple names of methods."""
    return {found[1].encode() for each in places if (found := _NAME.search(each.code_element or ""))}


class _Method:
    """Head and statements of a method; of statements those that are names alone are left out.

    A statement that calls the other method is no statement, and ``_CALL`` in their order.
    """

    def __init__(self, code: bytes, calls: set[bytes]) -> None:
        head, _, body = code.partition(b"{")
        pieces = [each.strip() for each in _STATEMENT_ENDS.split(body)]
        self.head = head.strip()
        self.order = [
            _CALL if _calls(each, calls) else each for each in pieces if each and not _SIMPLE.fullmatch(each)
        ]
        self.statements = [each for each in self.order if each != _CALL]

    def order_of(self, common: set[bytes], other: Counter[bytes]) -> list[bytes]:
        """Return the order of the statements in ``common`` and the call, or the statement in its place."""
        place = next((each for each in self.order if each not in common and each in other), None)
        order = [_CALL if each == place else each for each in self.order if each in {*common, _CALL, place}]
        return list(dict.fromkeys(order)) if _CALL in order else []


def _faults(
    before: _Method, after: _Method, others: Sequence[_Method], developers: _Method, *, is_extraction: bool
) -> Iterator[str]:
    """Yield what was changed; ``others`` are the extracted or inlined methods."""
    if after.head not in {before.head, developers.head}:
        yield "the head"
    other = Counter(each for method in others for each in method.statements)
    old, new, known = (Counter(each.statements) for each in (before, after, developers))
    changed = new - old - known if is_extraction else (old - new) & known
    if changed:
        yield f"`{_shown(next(iter(changed)))}` in the rest"
        return
    added = [] if is_extraction else [each for each in new - old - known if not _DECLARATION.fullmatch(each)]
    if len(added) > (known - new).total():
        yield f"a statement, such as `{_shown(added[0])}`, is new in the rest"
    all_old, all_new = (old, new + other) if is_extraction else (old + other, new)
    # Several copies may become one call, and a statement may be adapted to parameters.
    dropped = [each for each in all_old - all_new if each not in all_new and each in known]
    if len(dropped) > (all_new - all_old - known).total():
        yield f"a statement, such as `{_shown(dropped[0])}`, is dropped in the rest"
    common = {each for each in old if old[each] == new[each] == 1}
    orders = [method.order_of(common, other) for method in (before, after, developers)]
    if orders[0] and orders[1] and orders[0] != orders[1] and orders[2] in ([], orders[0]):
        yield "the order of statements"


def _code(files: Mapping[str, bytes], place: CodeRange) -> bytes:
    unit = parse_java(files.get(place.path, b""))
    found = next(methods_at(unit, place.path, [place]), None) if unit else None
    return b"" if unit is None or found is None else normal_code(unit.data[found.code_start : found.end])


def _calls(piece: bytes, names: set[bytes]) -> bool:
    words = piece.split()
    return any(word in names and after in {b"(", b":"} for word, after in pairwise((*words, b"")))


def _shown(statement: bytes) -> str:
    return statement.decode("utf-8", "replace")[:80]
