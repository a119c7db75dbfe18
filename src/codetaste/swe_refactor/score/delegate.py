"""The delegate that a move leaves in place of the method: one call of the moved method."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.place import TARGET_BEFORE, find_method, is_inlining

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_OF_CALL = re.compile(rb"[a-zA-Z_$][\w$]*|[.,()<>\[\]]")
_CONSTANTS = {b"null", b"true", b"false"}


def without_delegate(
    instance: RefactoringInstance,
    base: Mapping[str, bytes],
    files: Mapping[str, bytes],
    *,
    anything: bool = False,
) -> dict[str, bytes]:
    """Return the edited files without the delegate of a move; as they are for other types.

    Args:
        instance: the instance.
        base: files before, by path; at least those of ``files`` that exist.
        files: edited files by path.
        anything: leave out whatever stays of the method, as the published check does.
    """
    made = dict(files)
    data = made.get(instance.file_path_before)
    if data is None or is_inlining(instance) or not instance.type.startswith("Move"):
        return made
    before = parse_java(instance.source_code_before_for_whole.encode("utf-8", "replace"))
    unit = parse_java(data)
    target = before and find_method(before, instance.diff_locations[TARGET_BEFORE], instance.method_name)
    if unit is None or not target:
        return made
    left = [
        member
        for each in all_types(unit.types)
        if each.name == target.owner.name
        for member in each.members
        if member.is_method and member.signature == target.method.signature
    ]
    if len(left) != 1:
        return made
    same_head = _head(unit, left[0]) == _head(before, target.method) if before else False
    if anything or (same_head and _is_delegate(unit, left[0], _new_names(base, files))):
        made[instance.file_path_before] = data[: left[0].start] + data[left[0].end :]
    return made


def _new_names(base: Mapping[str, bytes], files: Mapping[str, bytes]) -> set[bytes]:
    """Return the names of which there are more methods than before."""
    before, after = (
        Counter(
            member.name.encode()
            for unit in map(parse_java, side)
            for each in all_types(unit.types if unit else ())
            for member in each.members
            if member.is_method
        )
        for side in ([base[path] for path in files if path in base], files.values())
    )
    return set(after - before)


def _is_delegate(unit: SourceUnit, method: SourceMember, names: set[bytes]) -> bool:
    """Return whether the body is one call of a new method: ``return Labels.label(name);``.

    The call has all parameters, no constant and no operator, so that it can do nothing but the moved method.
    """
    head, brace, body = normal_code(unit.data[method.code_start : method.end]).partition(b"{")
    words = body.split()
    call = words[1:-2] if words[:1] == [b"return"] else words[:-2]
    if not brace or words[-2:] != [b";", b"}"] or call[-1:] != [b")"]:
        return False
    if not all(_OF_CALL.fullmatch(each) and each not in _CONSTANTS for each in call):
        return False
    depth = at = 0
    for at in range(len(call) - 1, -1, -1):
        depth += {b")": 1, b"(": -1}.get(call[at], 0)
        if depth == 0:
            break
    is_called = call[at - 1] in names and (at == 1 or call[at - 2] == b".") if at else False
    return is_called and all(each in call for each in _parameters(head.split()))


def _head(unit: SourceUnit, method: SourceMember) -> bytes:
    """Return the code before the body, without the mark of a method that is not to be called any more."""
    head = normal_code(unit.data[method.code_start : method.end]).partition(b"{")[0]
    return head.replace(b"@ Deprecated ", b"")


def _parameters(head: list[bytes]) -> list[bytes]:
    """Return the names of the parameters in the head of a method."""
    names, depth = list[bytes](), 0
    words = head[head.index(b"(") :] if b"(" in head else []
    for at, word in enumerate(words):
        depth += {b"<": 1, b"(": 1, b">": -1, b")": -1}.get(word, 0)
        ends = (word == b"," and depth == 1) or (word == b")" and depth == 0)
        if ends and re.fullmatch(rb"[a-zA-Z_$][\w$]*", words[at - 1]):
            names.append(words[at - 1])
        if depth == 0:
            break
    return names
