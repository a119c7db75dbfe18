"""The delegate that a move leaves in place of the method: one call of the moved method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.place import TARGET_BEFORE, find_method, is_inlining

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.swe_refactor.answers.java.syntax import SourceMember, SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


def without_delegate(
    instance: RefactoringInstance, files: Mapping[str, bytes], *, anything: bool = False
) -> dict[str, bytes]:
    """Return the edited files without the delegate of a move; as they are for other types.

    Args:
        instance: the instance.
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
    if len(left) == 1 and (anything or _is_delegate(unit, left[0])):
        made[instance.file_path_before] = data[: left[0].start] + data[left[0].end :]
    return made


def _is_delegate(unit: SourceUnit, method: SourceMember) -> bool:
    """Return whether the body is one statement that calls a method: ``return Labels.label(name);``."""
    _, brace, body = normal_code(unit.data[method.code_start : method.end]).partition(b"{")
    words = body.split()
    return (
        bool(brace)
        and words.count(b";") == 1
        and words[-2:] == [b";", b"}"]
        and words[-3:-2] == [b")"]
        and b"{" not in words
    )
