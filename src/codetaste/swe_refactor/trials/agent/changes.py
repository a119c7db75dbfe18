"""What the patch of an agent makes of the files before: whole new contents, or why it cannot be used."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.text import printable, printable_name
from codetaste.errors import PatchDoesNotApply
from codetaste.java.build.build_system import is_build_file
from codetaste.source.patch.apply import applied_patch
from codetaste.swe_refactor.answers.edit.tree import MAX_FILE_BYTES
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.answers.problem import AnswerProblemKind as Kind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from codetaste.harness.patch.extract import ExtractedPatch
    from codetaste.source.tree.overlay import OverlayTree

_OUTPUT_FOLDERS = frozenset({"target", "build", "out", "bin", ".gradle"})
_SOURCES = "src"
_MAX_SENTENCE = 400


@dataclass(frozen=True, slots=True)
class AgentChanges:
    """The changes of an agent.

    Attributes:
        files: the whole new content of each changed file, by path; None for a deleted one.
        problem: why they cannot be used; None if they can, or if there are none.
    """

    files: Mapping[str, bytes | None] = field(default_factory=dict)
    problem: AnswerProblem | None = None


def may_be_answer(path: str, base: Path) -> bool:
    """Return whether a new file counts: Java code, or a file that decides about the build.

    All others are left out: what builds write, notes and backups of the agent. ``base`` are the files before:
    a folder that they have is none of a build's output, whatever its name. Blocking.
    """
    return (path.endswith(".java") or is_build_file(path)) and not _is_output(path, base)


def _is_output(path: str, base: Path) -> bool:
    folders = path.split("/")[:-1]
    for depth, name in enumerate(folders):
        if name == _SOURCES:  # packages may have such names
            return False
        if name in _OUTPUT_FOLDERS and not (base / "/".join(folders[: depth + 1])).is_dir():
            return True
    return False


async def read_changes(patch: ExtractedPatch, base: Path, scratch: Path) -> AgentChanges:
    """Return what a patch makes of the files in ``base``.

    Args:
        patch: the patch.
        base: the files before; not changed.
        scratch: an existing folder for the time of the call.

    Raises:
        SourceError: the files before cannot be read.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    if patch.problem:
        return _unusable(Kind.BAD_PATCH, f"The changes cannot be taken as a whole: {patch.problem}")
    try:
        async with applied_patch(base, patch.patch, scratch) as applied:
            return await to_thread.run_sync(_read, applied.tree)
    except PatchDoesNotApply as error:
        return _unusable(Kind.BAD_PATCH, f"The changes cannot be taken as a whole: {error}")


def _read(tree: OverlayTree) -> AgentChanges:
    files: dict[str, bytes | None] = dict.fromkeys(sorted(tree.deleted))
    for path in sorted(tree.changed):
        place, before = tree.overlay / path, tree.base / path
        name = printable_name(path.encode("utf-8", "surrogateescape"))
        if place.is_symlink():
            return _unusable(Kind.OUTSIDE, f"{name} is a symbolic link: an answer has regular files alone.")
        if place.stat().st_size > MAX_FILE_BYTES:
            return _unusable(Kind.BAD_PATCH, f"{name} has more than {MAX_FILE_BYTES:,} bytes.")
        content = place.read_bytes()
        if before.is_symlink() or not before.is_file() or before.read_bytes() != content:
            files[path] = content  # else its mode alone has changed
    return AgentChanges(files)


def _unusable(kind: Kind, sentence: str) -> AgentChanges:
    return AgentChanges(problem=AnswerProblem(kind, printable(sentence, _MAX_SENTENCE)))
