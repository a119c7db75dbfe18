"""A new Java file for the class of an answer: package, imports, class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.swe_refactor.answers.edit.imports import imports_of_moved_code
from codetaste.swe_refactor.answers.java.syntax import all_types
from codetaste.swe_refactor.answers.problem import AnswerFault
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from codetaste.swe_refactor.answers.code_part import CodePart
    from codetaste.swe_refactor.answers.edit.source_file import SourceFile
    from codetaste.swe_refactor.answers.edit.tree import TreeReader

_ROOTS = (("/main/", "/test/"), ("/test/", "/main/"))


@dataclass(frozen=True, slots=True)
class NewFile:
    """The text of the file, its class and its package."""

    text: str
    class_name: str
    package: str


def new_file(path: str, part: CodePart, source: SourceFile, tree: TreeReader) -> NewFile:
    """Return the file at ``path``. Its package is that of the path below the source root of ``source``.

    Raises:
        AnswerFault: class or package do not fit to the path, or the class exists in another source root.
    """
    folder, _, file_name = path.rpartition("/")
    owner, stem = part.owner, file_name.removesuffix(".java")
    if owner is None or owner.name != stem:
        raise AnswerFault(Kind.WRONG_CLASS, f"The new file {path} must have the class {stem}.")
    package = _package(folder, part, source)
    for old, new in _ROOTS:
        twin = path.replace(old, new, 1)
        if twin != path and tree.read(twin) is not None:
            raise AnswerFault(Kind.CLASS_EXISTS, f"The class {stem} exists already in {twin}.")
    if package == source.unit.package and any(each.name == stem for each in source.unit.types):
        raise AnswerFault(Kind.CLASS_EXISTS, f"The class {stem} exists already in {source.path}.")
    code = part.unit.text(owner.start, owner.end)
    declared = {each.name for each in all_types((owner,))}
    brought = imports_of_moved_code(code, source, package, declared, tree)
    names = {each.name.rpartition(".")[2] for each in part.imports}
    lines = {each.line for each in part.imports}
    lines |= {each.line for each in brought if each.name.rpartition(".")[2] not in names}
    blocks = [f"package {package};" if package else "", "\n".join(sorted(lines)), code]
    text = "\n\n".join(each for each in blocks if each) + "\n"
    return NewFile(text.replace("\n", source.newline), stem, package)


def _package(folder: str, part: CodePart, source: SourceFile) -> str:
    """Return the package of a folder: the one that is declared, if it fits."""
    own = source.path.rpartition("/")[0]
    below = source.unit.package.replace(".", "/")
    root = own.removesuffix(below).rstrip("/") if own.endswith(below) else None
    if part.package:
        if not f"/{folder}".endswith("/" + part.package.replace(".", "/")):
            raise AnswerFault(
                Kind.WRONG_CLASS, f"The package {part.package} does not fit to the folder {folder}."
            )
        return part.package
    if root is not None and f"{folder}/".startswith(f"{root}/" if root else ""):
        return folder[len(root) :].strip("/").replace("/", ".")
    raise AnswerFault(
        Kind.WRONG_CLASS, f"The new class must declare a package: {folder} is in no known source folder."
    )
