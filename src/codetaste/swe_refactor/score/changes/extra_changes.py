"""What an answer changes beside the refactoring: other members, other files.

Comments, white space and imports may change. Callers may be adapted: of the other members, statements may
change that name the method before or after, if it moves, goes away, or has a new name. Members may be new
that the developers' file has, too, and the refactored code names.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.parse import refactored_names
from codetaste.swe_refactor.answers.place import is_inlining
from codetaste.swe_refactor.score.changes.call_statement import around_calls
from codetaste.swe_refactor.score.changes.file_side import FileSide
from codetaste.swe_refactor.score.changes.new_class import (
    NewClasses,
    codes_of,
    developers_file,
    needless_members,
)
from codetaste.swe_refactor.score.changes.rest_of_method import changed_rests, method_names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance
    from codetaste.swe_refactor.enrich.places import RefactoringPlaces

_STATEMENT_ENDS = re.compile(rb"[;{}]")
_ESCAPE = re.compile(rb"\\u+(?:000[aAdD]|00[2-6][0-9a-fA-F]|007[0-9a-eA-E])")
"""A Unicode escape of an end of line or of a plain character: javac reads it before it looks for comments."""


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
    if _count_escapes(after) > _count_escapes(before):
        lines.append("a plain character is written as a Unicode escape, which can end a comment")
    new = list[NewClasses]()
    for path in sorted({*before, *after}):
        if path not in after:
            lines.append(f"{path} is deleted")
        elif path not in before:
            file = FileSide(after[path], path, right)
            if instance.move_file_exist is not False or file.unit is None or not file.methods:
                lines.append(f"{path} is new")
            else:
                new.append(NewClasses(file.unit, file.unit.types, file.methods))
        elif not path.endswith(".java"):
            lines.append(f"{path} is changed")
        else:
            sides = FileSide(before[path], path, left), FileSide(after[path], path, right)
            if "Move" in instance.type:
                new += sides[1].leave_out_new_types(sides[0])
            if path == instance.file_path_after:
                sides[1].leave_out_needed(sides[0], codes_of(developers_file(instance)))
            is_move = instance.type.startswith("Move") and not is_inlining(instance)
            lines += [f"{path}: {each}" for each in _compare(*sides, names, is_move=is_move)]
    return lines + (needless_members(instance, before, after, new) if new else [])


def _count_escapes(files: Mapping[str, bytes]) -> int:
    return sum(len(_ESCAPE.findall(data)) for path, data in files.items() if path.endswith(".java"))


def only_adapts(instance: RefactoringInstance, before: bytes | None, after: bytes | None) -> bool:
    """Return whether a file is changed only where it names the method, before or after. Blocking."""
    if before is None or after is None or instance.type.startswith("Extract"):
        return False
    names = {name.encode() for name in (instance.method_name, *refactored_names(instance))}
    return not list(_compare(FileSide(before, "", ()), FileSide(after, "", ()), names, is_move=False))


def _compare(before: FileSide, after: FileSide, names: set[bytes], *, is_move: bool) -> Iterator[str]:
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
            if not _is_adaption(one[1], other[1], names, is_move=is_move):
                named = True
                yield f"{name} is changed"
    if not named and before.rest(adapted) != after.rest(adapted):
        yield "code outside of its methods and fields is changed"


def _is_adaption(before: bytes, after: bytes, names: set[bytes], *, is_move: bool) -> bool:
    """Return whether the statements that differ all name the method; of a move they differ in it alone."""
    old, new = (Counter(_STATEMENT_ENDS.split(each)) for each in (before, after))
    gone, added = [*(old - new).elements()], [*(new - old).elements()]
    if is_move:
        around = [Counter(around_calls(each, names) for each in side) for side in (gone, added)]
        if around[0] != around[1]:
            return False
    return bool(gone or added) and all(names & set(each.split()) for each in (*gone, *added))
