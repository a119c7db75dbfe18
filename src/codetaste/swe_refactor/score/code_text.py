"""The text of an answer that CodeBLEU compares with the developers' code (SWE-Refactor §3.2).

The published reference is the method after the refactoring with the extracted one behind it. The text of an
answer is made alike from the edited files: the method, then all methods that are new; of a move the moved
method alone. Neither a delegate that a move leaves is part of it, nor a new method that the developers have
beside the reference. Javadoc is left out on both sides: references have it or not, and an answer without it
keeps that of the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.java.syntax import all_types, normal_code, parse_java
from codetaste.swe_refactor.answers.parse import refactored_names
from codetaste.swe_refactor.score.changes.new_class import codes_of, developers_file
from codetaste.swe_refactor.score.delegate import without_delegate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance


def reference_code(instance: RefactoringInstance) -> str:
    """Return the developers' methods without Javadoc."""
    text = instance.source_code_after_refactoring
    head, tail = "class C {\n", "\n}"
    unit = parse_java(f"{head}{text}{tail}".encode("utf-8", "replace"))
    if unit is None or unit.error_at is not None or len(unit.types) != 1:
        return text
    return "\n\n".join(unit.text(each.code_start, each.end) for each in unit.types[0].members) or text


def refactored_code(
    instance: RefactoringInstance, base: Mapping[str, bytes], edited: Mapping[str, bytes | None]
) -> str:
    """Return the refactored method and the new ones behind it; "" if there are none.

    Args:
        instance: the instance.
        base: files before, by path; at least those of ``edited`` that exist.
        edited: the whole new content of the changed files; None for a deleted one.
    """
    names = set(refactored_names(instance))
    reference = normal_code(instance.source_code_after_refactoring.encode("utf-8", "replace"))
    beside = {code for code in codes_of(developers_file(instance)) if code not in reference}
    given = {path: data for path, data in edited.items() if data is not None}
    files = without_delegate(instance, base, given)
    found = list[tuple[str, str]]()
    for path in sorted(files, key=lambda each: (each != instance.file_path_before, each)):
        if path.endswith(".java"):
            before = {key: code for key, code, _, _ in _methods(base.get(path, b""))}
            for key, code, name, text in _methods(files[path]):
                if name not in names and code in beside:
                    continue
                if key not in before or (name in names and code != before[key]):
                    found.append((name, text))
    named = [each for each in found if each[0] in names]
    if named and not instance.type.startswith("Extract"):
        return "\n\n".join(text for _, text in named)
    return "\n\n".join(text for _, text in (*named, *(each for each in found if each not in named)))


def _methods(data: bytes) -> Iterator[tuple[tuple[str, str], bytes, str, str]]:
    """Yield class and signature of each method, its code, its name, and its text."""
    unit = parse_java(data)
    for owner in all_types(unit.types) if unit else ():
        for each in owner.members:
            if each.is_method:
                code = data[each.code_start : each.end]
                text = code.decode("utf-8", "replace")
                yield (owner.name, each.signature), normal_code(code), each.name, text
