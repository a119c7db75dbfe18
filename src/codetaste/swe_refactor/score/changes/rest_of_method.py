"""What is changed in a method beside the code that is extracted from it, or inlined into it.

PurityChecker judges the extracted or inlined code alone. Here a method is its head and its statements, texts
between semicolons and braces. What the developers changed, too, may change: all of it, or nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import normal_code, parse_java
from codetaste.swe_refactor.answers.place import find_method
from codetaste.swe_refactor.dataset.instance import DiffLocation
from codetaste.swe_refactor.score.changes.call_statement import around_calls, calls, is_plain, occurs

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
    lines = list[str]()
    for place in places:
        same = [each for each in places if each.before == place.before]
        new = [each.extracted for each in same if each.extracted is not None]
        gone = [each.inlined for each in same if each.inlined is not None]
        if new or gone:
            name = place.after.code_element or "the method"
            codes = _code(before, place.before), _code(after, place.after)
            others = [_code(after, each) for each in new] + [_code(before, each) for each in gone]
            rests = _rests(codes, others, method_names([*new, *gone]), instance, is_extraction=bool(new))
            faults = _faults(rests, is_extraction=bool(new))
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

    A statement that calls the other method is no statement, and ``_CALL`` in their order. One that is there
    without the other method calls a method of the same name.
    """

    def __init__(self, code: bytes, names: set[bytes], without_other: bytes = b"") -> None:
        self.code = code
        plain = set(_pieces(without_other))
        self.head = code.partition(b"{")[0].strip()
        called = [each for each in _pieces(code) if each not in plain and calls(each, names)]
        self.calls = {each: around_calls(each, names) for each in called}
        self.order = [_CALL if each in called else each for each in _pieces(code)]
        self.order = [each for each in self.order if not _SIMPLE.fullmatch(each)]
        self.statements = [each for each in self.order if each != _CALL]

    def order_of(self, common: set[bytes], other: Counter[bytes]) -> list[bytes]:
        """Return the order of the statements in ``common`` and the call, or the statement in its place."""
        place = next((each for each in self.order if each not in common and each in other), None)
        order = [_CALL if each == place else each for each in self.order if each in {*common, _CALL, place}]
        return list(dict.fromkeys(order)) if _CALL in order else []


@dataclass(frozen=True, slots=True)
class _Rests:
    """A method before and after, the extracted or inlined ones, and the developers'.

    ``known`` is all that the developers' methods have, ``developers`` their method without the extracted one.
    """

    before: _Method
    after: _Method
    others: list[_Method]
    developers: _Method
    known: _Method


def _rests(
    codes: tuple[bytes, bytes],
    others: Sequence[bytes],
    names: set[bytes],
    instance: RefactoringInstance,
    *,
    is_extraction: bool,
) -> _Rests:
    """Return the methods; ``names`` are those of ``others``."""
    text = instance.source_code_after_refactoring.encode("utf-8", "replace")
    known = normal_code(text)
    unit = parse_java(b"class C {\n" + text + b"\n}")
    members = [each for each in unit.types[0].members if each.is_method] if unit and unit.types else []
    developers = [normal_code(unit.data[each.code_start : each.end]) for each in members] if unit else []
    own = names | {each.name.encode() for each in members[1:]}
    plain = codes[0] if is_extraction else codes[1] + b";" + known
    return _Rests(
        _Method(codes[0], names, plain),
        _Method(codes[1], names, plain),
        [_Method(each, names, plain) for each in others],
        _Method(developers[0] if developers else known, own, plain),
        _Method(known, own, plain),
    )


def _faults(rests: _Rests, *, is_extraction: bool) -> Iterator[str]:
    """Yield what was changed."""
    before, after = rests.before, rests.after
    if after.head not in {before.head, rests.developers.head}:
        yield "the head"
    other = Counter(each for method in rests.others for each in method.statements)
    old, new, known = (Counter(each.statements) for each in (before, after, rests.known))
    changed = new - old - known if is_extraction else (old - new) & known
    if changed:
        yield f"`{_shown(next(iter(changed)))}` in the rest"
        return
    if is_extraction and new - old:
        missing = Counter(rests.developers.statements) - old - new
        if missing:
            yield f"`{_shown(next(iter(missing)))}`, a part of the developers' change, in the rest"
    added = [] if is_extraction else [each for each in new - old - known if not _DECLARATION.fullmatch(each)]
    if len(added) > (known - new).total():
        yield f"a statement, such as `{_shown(added[0])}`, is new in the rest"
    all_old, all_new = (old, new + other) if is_extraction else (old + other, new)
    # Several copies may become one call, and a statement may be adapted to parameters.
    dropped = [each for each in all_old - all_new if each not in all_new and each in known]
    if len(dropped) > (all_new - all_old - known).total():
        yield f"a statement, such as `{_shown(dropped[0])}`, is dropped in the rest"
    common = {each for each in old if old[each] == new[each] == 1}
    orders = [method.order_of(common, other) for method in (before, after, rests.known)]
    if orders[0] and orders[1] and orders[0] != orders[1] and orders[2] in ([], orders[0]):
        yield "the order of statements"
    for statement in _changed_calls(rests, is_extraction=is_extraction):
        yield f"`{_shown(statement)}`, beside the call, in the rest"


def _changed_calls(rests: _Rests, *, is_extraction: bool) -> Iterator[bytes]:
    """Yield statements whose text around the call is neither that of the other side nor the developers'."""
    method, side = (rests.after, rests.before) if is_extraction else (rests.before, rests.after)
    developers = rests.developers
    for statement, around in method.calls.items():
        if is_extraction:
            as_developers = around in developers.calls.values()
        else:
            as_developers = not occurs(around, developers.code)
        if not as_developers and not is_plain(around) and not occurs(around, side.code):
            yield statement


def _pieces(code: bytes) -> list[bytes]:
    body = code.partition(b"{")[2]
    return [each.strip() for each in _STATEMENT_ENDS.split(body) if each.strip()]


def _code(files: Mapping[str, bytes], place: CodeRange) -> bytes:
    unit = parse_java(files.get(place.path, b""))
    found = next(methods_at(unit, place.path, [place]), None) if unit else None
    return b"" if unit is None or found is None else normal_code(unit.data[found.code_start : found.end])


def _shown(statement: bytes) -> str:
    return statement.decode("utf-8", "replace")[:80]
