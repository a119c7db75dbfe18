"""The text of a model as an answer: its parts, read and checked as far as no file is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.answer_format import PartName, split_answer
from codetaste.swe_refactor.answers.code_part import parse_code
from codetaste.swe_refactor.answers.java.syntax import normal_code, parse_java
from codetaste.swe_refactor.answers.place import caller_name, is_inlining
from codetaste.swe_refactor.answers.problem import AnswerFault, AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind
from codetaste.swe_refactor.answers.target_path import parse_target_path

if TYPE_CHECKING:
    from codetaste.swe_refactor.answers.code_part import CodePart
    from codetaste.swe_refactor.dataset.instance import RefactoringInstance

_ADDED = (PartName.MOVED_CLASS_CODE, PartName.EXTRACTED_METHOD_CODE)
_REFACTORED = (PartName.REFACTORED_METHOD_CODE, PartName.REFACTORED_CLASS_CODE)


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """An answer in the format of its type.

    Attributes:
        target_path: the file that the answer names; None where the format has none.
        added: the code for the target file; None where the format has none.
        refactored: the refactored method, with the extracted one of Extract Method; of inlinings the method
            that takes the code in. None of a move that leaves nothing behind.
        names: the names that the refactored method may have.
    """

    target_path: str | None
    added: CodePart | None
    refactored: CodePart | None
    names: tuple[str, ...]


def parse_answer(text: str, instance: RefactoringInstance) -> ParsedAnswer | AnswerProblem:
    """Return the answer in the text of a model, or the first problem with it."""
    try:
        return _parse(text, instance)
    except AnswerFault as fault:
        return fault.problem


def refactored_names(instance: RefactoringInstance) -> tuple[str, ...]:
    """Return the names that the refactored method may have: the one before, and the developers'.

    Empty if the instance does not show the method.
    """
    before = caller_name(instance) if is_inlining(instance) else instance.method_name
    after = _first_method(instance.source_code_after_refactoring)
    return tuple(dict.fromkeys(name for name in (before, after) if name)) if before else ()


def _parse(text: str, instance: RefactoringInstance) -> ParsedAnswer:
    parts = split_answer(text, instance.type)
    path = parts.get(PartName.TARGET_FILE_PATH)
    target_path = None if path is None else parse_target_path(path)
    names = refactored_names(instance)
    added = refactored = None
    for name, piece in parts.items():
        if name in _ADDED:
            added = parse_code(name, piece, instance.source_code_before_for_whole)
            _check_moved_name(added, instance)
        elif name in _REFACTORED and not _may_be_empty(piece, instance):
            refactored = parse_code(name, piece, instance.source_code_before_for_whole)
            _check_refactored_name(name, refactored, names)
    return ParsedAnswer(target_path, added, refactored, names)


def _may_be_empty(piece: str, instance: RefactoringInstance) -> bool:
    return instance.type.startswith("Move") and not is_inlining(instance) and not normal_code(piece.encode())


def _check_moved_name(part: CodePart, instance: RefactoringInstance) -> None:
    found = {each.name for each in part.methods}
    if instance.type == "Move Method" and instance.method_name not in found:
        raise AnswerFault(
            Kind.METHOD_NAME,
            f"The part {PartName.MOVED_CLASS_CODE} must have the method {instance.method_name}; "
            f"it has {_listed(found)}.",
        )


def _check_refactored_name(name: PartName, part: CodePart, names: tuple[str, ...]) -> None:
    found = {each.name for each in part.methods}
    if names and not found & set(names):
        raise AnswerFault(
            Kind.METHOD_NAME, f"The part {name} must have the method {names[0]}; it has {_listed(found)}."
        )


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)[:5])


def _first_method(text: str) -> str | None:
    unit = parse_java(f"class C {{\n{text}\n}}".encode("utf-8", "replace"))
    members = unit.types[0].members if unit and unit.types else ()
    return next((each.name for each in members if each.is_method), None)
