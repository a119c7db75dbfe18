"""What does not fit together in an instance: texts that are not its methods, keys that contradict."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.core.text import one_line
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_EXTRACTED = re.compile(r"^(?:\w+ )*([\w$]+)\(")
"""The name of the method with which the description of an extraction begins."""


def find_inconsistencies(instance: RefactoringInstance) -> Iterator[str]:
    """Yield a line for each contradiction; each begins with the key.

    In the published files the extracted method of most instances of Extract And Move Method, and the target
    of all of Move And Inline Method, are lines of another file: see docs/reproduction.md.
    """
    if instance.type not in REFACTORING_TYPES:
        yield f"type: {one_line(instance.type)} is none of the six types"
    if not instance.unique_id.startswith(f"{instance.commit_id}_"):
        yield "uniqueId: it does not begin with the commit"
    if instance.method_name_before != f"{instance.class_name_before}#{instance.method_name}":
        yield "methodNameBefore: it is no method of classNameBefore"
    if not _names(instance.source_code_before_refactoring, instance.method_name):
        yield f"sourceCodeBeforeRefactoring: it has no method {one_line(instance.method_name)}"
    if instance.type.startswith("Extract"):
        match = _EXTRACTED.match(instance.description.partition("\t")[2])
        if match and not any(_names(text, match[1]) for text in instance.diff_source_code_set):
            yield f"diffSourceCodeSet: it has no method {match[1]}"
    for index, place in enumerate(instance.diff_locations):
        if not 1 <= place.start_line <= place.end_line:
            yield f"diffLocations.{index}: lines {place.start_line} to {place.end_line}"
    if instance.is_pure_refactoring != any(each.is_pure for each in instance.purity_check_result_list):
        yield "isPureRefactoring: it is not what purityCheckResultList says"


def _names(text: str, method: str) -> bool:
    """Return whether a text has a method of that name, or a compact constructor, which has no parentheses."""
    return re.search(rf"(?<![\w$]){re.escape(method)}\s*[({{]", text) is not None
