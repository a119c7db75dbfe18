"""The developers' own change as an answer, built from an instance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.answer_format import format_answer
from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.place import OTHER, TARGET_AFTER, find_method, is_inlining, location

if TYPE_CHECKING:
    from codetaste.swe_refactor.answers.java.syntax import SourceUnit
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


def developer_answer(instance: RefactoringInstance) -> str:
    """Return the answer with which the developers' methods come out.

    Of what else their commit changed it has the imports that they need, and new members of the class that
    an extraction needs; callers and other classes are not in it. Of Extract And Move Method the instance does
    not have the target file: the method goes to its main class.
    """
    after = instance.source_code_after_refactoring
    if instance.type == "Extract Method":
        return format_answer([_with_needs(instance, after)])
    if instance.type == "Inline Method":
        return format_answer([_with_imports(instance, after)])
    if is_inlining(instance):
        return format_answer([instance.file_path_before, after])
    if instance.type == "Extract And Move Method":
        extracted = "\n\n".join(instance.diff_source_code_set)
        refactored = after.removesuffix(extracted) if extracted else after
        target = location(instance, OTHER)
        return format_answer(
            [target.file_path if target else instance.file_path_after, extracted, refactored]
        )
    moved = _moved_class(instance)
    if instance.move_file_exist is not False:
        moved = _with_imports(instance, moved)
    return format_answer([instance.file_path_after, moved, ""])


def _moved_class(instance: RefactoringInstance) -> str:
    """Return the moved method inside of its classes; the whole file if it is new."""
    whole, method = instance.source_code_after_for_whole, instance.source_code_after_refactoring
    if instance.move_file_exist is False:
        return whole
    unit = _unit(whole)
    lines = location(instance, TARGET_AFTER)
    place = find_method(unit, lines) if unit and lines else None
    before = _unit(instance.source_code_before_for_whole)
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


def _with_needs(instance: RefactoringInstance, code: str) -> str:
    """Return bare methods with the new members of their class that they name, and imports."""
    before, after = _unit(instance.source_code_before_for_whole), _unit(instance.source_code_after_for_whole)
    lines = location(instance, TARGET_AFTER)
    place = find_method(after, lines) if after and lines else None
    if before is None or after is None or place is None:
        return code
    old = {
        name
        for each in all_types(before.types)
        if each.name == place.owner.name
        for name in (*(member.signature for member in each.members), *(inner.name for inner in each.types))
    }
    owner = next(
        (each for each in all_types(after.types) if each.code_start == place.owner.code_start), place.owner
    )
    members = [each for each in owner.members if each.signature not in old]
    types = [each for each in owner.types if each.name not in old]
    new = [(each.name, after.text(each.start, each.end)) for each in types]
    new += [(each.name, after.text(each.start, each.end)) for each in members]
    rest = [(name, text) for name, text in new if not _has(code, text)]
    while needed := [each for each in rest if set(each[0].split(",")) & _words(code)]:
        code = "\n\n".join([code, *(text for _, text in needed)])
        rest = [each for each in rest if each not in needed]
    return _with_imports(instance, code)


def _with_imports(instance: RefactoringInstance, code: str) -> str:
    """Return code with those imports of the developers before it that it needs and the file does not have."""
    before, after = _unit(instance.source_code_before_for_whole), _unit(instance.source_code_after_for_whole)
    if before is None or after is None:
        return code
    old, words = {each.line for each in before.imports}, _words(code)
    new = [
        each.line
        for each in after.imports
        if each.line not in old and each.name.rpartition(".")[2] in {*words, "*"}
    ]
    return "\n".join([*new, code])


def _unit(text: str) -> SourceUnit | None:
    return parse_java(text.encode("utf-8", "replace"))


def _words(code: str) -> set[str]:
    return set(normal_code(code.encode("utf-8", "replace")).decode().split())


def _has(code: str, text: str) -> bool:
    found, wanted = (normal_code(each.encode("utf-8", "replace")) for each in (code, text))
    return wanted in found
