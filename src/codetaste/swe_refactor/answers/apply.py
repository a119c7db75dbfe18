"""An answer as edited files: the method replaced, moved or inlined by byte range, all else as it was.

Callers are not adapted: a model does that inside of the format or not at all, as in the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.edit.imports import (
    add_imports,
    declared_names,
    import_of,
    imports_of_moved_code,
    used_words,
)
from codetaste.swe_refactor.answers.edit.members import add_members, remove_member, replace_member
from codetaste.swe_refactor.answers.edit.merge import NewMember, find_change
from codetaste.swe_refactor.answers.edit.new_file import new_file
from codetaste.swe_refactor.answers.edit.source_file import ByteEdit, SourceFile, apply_edits, open_source
from codetaste.swe_refactor.answers.java.syntax import normal_code
from codetaste.swe_refactor.answers.place import (
    OTHER,
    TARGET_BEFORE,
    MethodPlace,
    find_method,
    is_inlining,
    location,
)
from codetaste.swe_refactor.answers.problem import AnswerFault, AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.swe_refactor.answers.code_part import CodePart
    from codetaste.swe_refactor.answers.edit.tree import TreeReader
    from codetaste.swe_refactor.answers.java.syntax import SourceType
    from codetaste.swe_refactor.answers.parse import ParsedAnswer
    from codetaste.swe_refactor.dataset.instance import DiffLocation, RefactoringInstance


@dataclass(frozen=True, slots=True)
class EditedFiles:
    """Files after an answer.

    Attributes:
        files: the whole new content by path.
        edits: the edits that lead there, by path and place; all other bytes are as before.
        created: paths of files that were not there.
    """

    files: Mapping[str, bytes]
    edits: tuple[ByteEdit, ...]
    created: tuple[str, ...]


def apply_answer(
    instance: RefactoringInstance, answer: ParsedAnswer, tree: TreeReader, *, keep_delegate: bool = True
) -> EditedFiles | AnswerProblem:
    """Return the files that an answer changes, or why it cannot be applied. Blocking.

    Args:
        instance: the instance that was asked.
        answer: the answer to it.
        tree: the files before the commit.
        keep_delegate: whether what a move leaves in place of the method stays; the published check for moves
            looks at the source file without it, while the published build compiles it.
    """
    try:
        edited = _Edited(tree)
        if instance.type == "Extract Method":
            _extract(instance, answer, edited)
        elif is_inlining(instance):
            _inline(instance, answer, edited)
        else:
            _move(instance, answer, edited, keep_delegate=keep_delegate)
        return edited.result()
    except AnswerFault as fault:
        return fault.problem


class _Edited:
    """The files of one answer, each opened once."""

    def __init__(self, tree: TreeReader) -> None:
        self.tree = tree
        self._files: dict[str, SourceFile] = {}
        self._created: dict[str, str] = {}

    def base(self, path: str) -> SourceFile:
        """Return a file that must be there."""
        if path not in self._files:
            raw = self.tree.read(path)
            if raw is None:
                raise AnswerFault(Kind.WRONG_TREE, f"{path} is not in the source tree.")
            self._files[path] = open_source(path, raw)
        return self._files[path]

    def place(
        self, where: DiffLocation | None, code: str | None, name: str | None
    ) -> tuple[SourceFile, MethodPlace]:
        """Return the method at a place, with its file; ``code`` is what must be there."""
        if where is None:
            raise AnswerFault(Kind.WRONG_TREE, "The instance does not say where its methods are.")
        file = self.base(where.file_path)
        place = find_method(file.unit, where, name)
        if place is None or (code is not None and not _is_same(code, file, place)):
            lines = f"{where.start_line} to {where.end_line}"
            raise AnswerFault(
                Kind.WRONG_TREE, f"{file.path} does not have the method of the instance in lines {lines}."
            )
        return file, place

    def create(self, path: str, text: str) -> None:
        """Add a new file."""
        self._created[path] = text

    def result(self) -> EditedFiles:
        edits = {path: file.byte_edits() for path, file in self._files.items() if file.edits}
        files = {path: apply_edits(self._files[path].raw, each) for path, each in edits.items()}
        for path, text in self._created.items():
            files[path] = text.encode()
            edits[path] = (ByteEdit(path, 0, 0, files[path]),)
        ordered = sorted(edits)
        return EditedFiles(
            {path: files[path] for path in ordered},
            tuple(each for path in ordered for each in edits[path]),
            tuple(sorted(self._created)),
        )


def _extract(instance: RefactoringInstance, answer: ParsedAnswer, edited: _Edited) -> None:
    file, target = _target(instance, edited)
    new = _refactor(answer, file, target)
    if not any(each.methods for each in new):
        raise AnswerFault(Kind.NO_NEW_METHOD, "The answer has no new method; one must be extracted.")


def _inline(instance: RefactoringInstance, answer: ParsedAnswer, edited: _Edited) -> None:
    where = location(instance, TARGET_BEFORE)
    path = where.file_path if where else instance.file_path_before
    if answer.target_path not in {None, path}:
        raise AnswerFault(
            Kind.WRONG_FILE,
            f"The method that takes the code in is in {path}, not in {answer.target_path}.",
        )
    file, caller = edited.place(where, None, None)
    source, inlined = edited.place(
        location(instance, OTHER), instance.source_code_before_refactoring, instance.method_name
    )
    same = source is file and inlined.owner.code_start == caller.owner.code_start
    _refactor(answer, file, caller, inlined if same else None)
    remove_member(source, inlined.method)
    if source is not file and answer.refactored:
        code = answer.refactored.unit.text(0, len(answer.refactored.unit.data))
        add_imports(
            file, imports_of_moved_code(code, source, file.unit.package, declared_names(file), edited.tree)
        )


def _move(
    instance: RefactoringInstance, answer: ParsedAnswer, edited: _Edited, *, keep_delegate: bool
) -> None:
    source, target = _target(instance, edited)
    path, part = answer.target_path, answer.added
    if path is None or part is None:
        raise ValueError("the answer is none to a move")
    refactored = answer.refactored if keep_delegate or instance.type == "Extract And Move Method" else None
    if edited.tree.is_link(path):
        raise AnswerFault(Kind.OUTSIDE, f"The path {path} leads through a symbolic link.")
    if edited.tree.read(path) is None:
        class_name, package = _create(instance, source, path, part, edited)
    else:
        class_name, package = _add(instance, source, target, path, part, edited)
    if refactored is None:
        remove_member(source, target.method)
        return
    _refactor(answer, source, target)
    words = used_words(refactored.unit.text(0, len(refactored.unit.data)))
    if package and package != source.unit.package and class_name.split(".")[0] in words:
        add_imports(source, [import_of(f"{package}.{class_name.split('.')[0]}")])


def _create(
    instance: RefactoringInstance, source: SourceFile, path: str, part: CodePart, edited: _Edited
) -> tuple[str, str]:
    """Add a file with the class of the part; return the names of class and package."""
    if instance.move_file_exist is not False or part.owner is None:
        raise AnswerFault(
            Kind.NO_FILE, f"The file {path} does not exist; the target must be an existing Java file."
        )
    made = new_file(path, part, source, edited.tree)
    edited.create(path, made.text)
    return made.class_name, made.package


def _add(
    instance: RefactoringInstance,
    source: SourceFile,
    target: MethodPlace,
    path: str,
    part: CodePart,
    edited: _Edited,
) -> tuple[str, str]:
    """Add the moved members to their class; return the names of class and package."""
    file = edited.base(path)
    owner = _main_type(file)
    change = find_change(part, file, owner, old=None)
    if not any(each.methods for each in change.new):
        raise AnswerFault(Kind.NO_NEW_METHOD, f"The answer adds no method to {path}.")
    stays = [each for each in change.new if each.owner.code_start == target.owner.code_start]
    if file is source and any(each.methods and not each.is_type for each in stays):
        raise AnswerFault(
            Kind.SAME_CLASS, f"The method is in {target.owner.name} already; it must move to another class."
        )
    if instance.type == "Move Method" and instance.method_name not in {
        name for each in change.new for name in each.methods
    }:
        raise AnswerFault(Kind.METHOD_EXISTS, f"{path} has a method {instance.method_name} already.")
    _put(file, change.new)
    moved = "\n".join(each.text for each in change.new)
    words = imports_of_moved_code(moved, source, file.unit.package, declared_names(file), edited.tree)
    add_imports(file, [*part.imports, *(words if file is not source else ())])
    return owner.name, file.unit.package


def _target(instance: RefactoringInstance, edited: _Edited) -> tuple[SourceFile, MethodPlace]:
    where = location(instance, TARGET_BEFORE)
    return edited.place(where, instance.source_code_before_refactoring, instance.method_name)


def _refactor(
    answer: ParsedAnswer, file: SourceFile, place: MethodPlace, gone: MethodPlace | None = None
) -> tuple[NewMember, ...]:
    """Replace the method by that of the answer; return the new members beside it."""
    part = answer.refactored
    if part is None:
        raise ValueError("the answer has no refactored method")
    change = find_change(part, file, place.owner, place.method, answer.names, gone.method if gone else None)
    beside = [each for each in change.new if each.owner.code_start == place.owner.code_start]
    replace_member(file, place.method, change.refactored or "", [each.text for each in beside])
    _put(file, [each for each in change.new if each not in beside])
    add_imports(file, part.imports)
    return change.new


def _put(file: SourceFile, new: Sequence[NewMember]) -> None:
    owners: dict[int, SourceType] = {each.owner.code_start: each.owner for each in new}
    for start, owner in owners.items():
        add_members(file, owner, [each.text for each in new if each.owner.code_start == start])


def _main_type(file: SourceFile) -> SourceType:
    """Return the type that the file is named after, else its first one."""
    stem = file.path.rpartition("/")[2].removesuffix(".java")
    types = file.unit.types
    if not types:
        raise AnswerFault(Kind.WRONG_CLASS, f"{file.path} has no class that a method can move to.")
    return next((each for each in types if each.name == stem), types[0])


def _is_same(code: str, file: SourceFile, place: MethodPlace) -> bool:
    """Return whether the code is that of the place, but for comments and characters beyond ASCII."""
    there = file.unit.data[place.method.code_start : place.method.end]
    pair = (
        normal_code(each).decode("ascii", "ignore").replace("?", "")
        for each in (code.encode("utf-8", "replace"), there)
    )
    first, second = ("".join(each.split()) for each in pair)
    return first == second
