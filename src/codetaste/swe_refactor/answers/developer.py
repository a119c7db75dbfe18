"""The developers' own change as an answer, built from an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.java.syntax import all_types, parse_java
from codetaste.swe_refactor.answers.place import OTHER, TARGET_AFTER, find_method, is_inlining, location

if TYPE_CHECKING:
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


def developer_answer(instance: RefactoringInstance) -> str:
    """Return the answer with which the developers' methods come out.

    What else their commit changed is not in it, such as callers, fields and other classes. Of Extract And
    Move Method the instance does not have the target file: the method goes to its main class.
    """
    after = instance.source_code_after_refactoring
    if instance.type in {"Extract Method", "Inline Method"}:
        return format_answer([after])
    if is_inlining(instance):
        return format_answer([instance.file_path_before, after])
    if instance.type == "Extract And Move Method":
        extracted = "\n\n".join(instance.diff_source_code_set)
        refactored = after.removesuffix(extracted) if extracted else after
        target = location(instance, OTHER)
        return format_answer(
            [target.file_path if target else instance.file_path_after, extracted, refactored]
        )
    return format_answer([instance.file_path_after, _moved_class(instance), ""])


def _moved_class(instance: RefactoringInstance) -> str:
    """Return the moved method inside of its classes; the whole file if it is new."""
    whole, method = instance.source_code_after_for_whole, instance.source_code_after_refactoring
    if instance.move_file_exist is False:
        return whole
    unit = parse_java(whole.encode("utf-8", "replace"))
    lines = location(instance, TARGET_AFTER)
    place = find_method(unit, lines) if unit and lines else None
    before = parse_java(instance.source_code_before_for_whole.encode("utf-8", "replace"))
    if unit is None or place is None or before is None:
        return method
    known = {each.name for each in all_types(before.types)}
    heads = list[str]()
    for each in all_types(unit.types):
        if each.start <= place.method.start < each.end:
            if instance.file_path_before == instance.file_path_after and each.name not in known:
                method = unit.text(each.start, each.end)  # its class is new, too
                break
            heads.append(f"class {each.name} {{\n")
    return "".join(heads) + method + "\n}" * len(heads)
