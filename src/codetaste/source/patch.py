"""Reading a unified diff line by line, git's or plain: which lines of R it removes, which of R∘X̂ it adds.

It is read as ``git apply`` reads it. What a hunk's header counts decides: within a hunk lines are content,
whatever they look like; between files everything that is no header is skipped, mail above all. But text
without any file in it is an error.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.errors import PatchError, PatchTooLarge, SourceError
from codetaste.source.file_diff import FileDiff, Line, Patch
from codetaste.source.patch_header import Section, git_section, plain_section
from codetaste.source.patch_hunks import MAX_RUNS, line_at, read_binary, read_hunks
from codetaste.source.patch_names import named, strip_level

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["MAX_PATCH_BYTES", "FileDiff", "Line", "Patch", "parse_patch", "read_patch"]

MAX_PATCH_BYTES = 256 * 1024**2
"""A larger patch is not read: what a harvest may write at the most."""
MAX_FILES = 200_000

_START = re.compile(rb"^(?:diff --(?:git|cc|combined) |--- |@@ -|@@@ )", re.MULTILINE)
_FRAGMENT = re.compile(rb"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_COMBINED = re.compile(rb"diff --(?:cc|combined) |@@@ ")


def parse_patch(content: bytes) -> Patch:
    r"""Parse a patch; blank content is one without files. Only ``\n`` ends a line.

    Raises:
        PatchError: it is no patch, ends too early, or is a combined diff; with the line.
        PatchTooLarge: it has more than 200,000 files, or two million places that change.
    """
    sections: list[Section] = []
    at = runs = 0
    if content.count(b"\ndiff --git ") > MAX_FILES:  # within a hunk no line begins so
        raise _too_many()
    while found := _START.search(content, at):
        section = _section(content, found.start())
        if section is None:
            at = content.find(b"\n", found.start()) + 1 or len(content)
            continue
        at = _read(section, content)
        sections.append(section)
        runs += len(section.removed) + len(section.added)
        if len(sections) > MAX_FILES or runs > MAX_RUNS:
            raise _too_many()
    if not sections and content.strip():
        raise PatchError("this is no patch: there is no file header ('diff --git' or '---' and '+++') in it")
    strip = strip_level(sections, content)
    return Patch(tuple(named(section, strip, content) for section in sections), strip)


def read_patch(path: Path, limit: int = MAX_PATCH_BYTES) -> bytes:
    """Return the bytes of the patch file ``path``, of ``limit`` bytes at the most. Blocks.

    Raises:
        PatchTooLarge: it is larger; nothing of it was read.
        SourceError: it cannot be read, or is no file.
    """
    try:
        # A pipe would keep us waiting for whoever writes to it.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > limit else file.read(limit + 1) or b""
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if max(size, len(content)) > limit:
        raise PatchTooLarge(
            f"{path}: a patch of {max(size, len(content)):,} bytes; no more than {limit:,} are read"
        )
    return content


def _too_many() -> PatchTooLarge:
    return PatchTooLarge(f"the patch changes more than {MAX_FILES:,} files or {MAX_RUNS:,} places in them")


def _section(content: bytes, at: int) -> Section | None:
    """Read the header of a file at ``at``; None where the line only looks like the start of one."""
    if _COMBINED.match(content, at):
        raise PatchError(
            f"line {line_at(content, at)}: a combined diff (of a merge), which changes no single tree; "
            "make the patch against one parent",
            line=line_at(content, at),
        )
    if content.startswith(b"@@ -", at):
        if _FRAGMENT.match(content, at):
            line = line_at(content, at)
            raise PatchError(f"line {line}: a hunk without the header of its file", line=line)
        return None
    return git_section(content, at) if content.startswith(b"diff", at) else plain_section(content, at)


def _read(section: Section, content: bytes) -> int:
    """Read what follows the header; return where it ends."""
    at = read_hunks(content, section.body, section.removed, section.added)
    if at == section.body and section.git:
        binary = read_binary(content, at)
        section.binary, section.made_bytes, at = binary.found, binary.made_bytes, binary.end
        if not (section.binary or section.changes_metadata):
            line = line_at(content, section.start)
            raise PatchError(f"line {line}: the header of a file that nothing follows", line=line)
    section.end = at
    return at
