"""Parser of unified diffs, git's or plain: which lines of R are removed, which of R∘X̂ are added.

It reads a patch as ``git apply`` does. The counts of a hunk header decide: inside a hunk all lines are
content, whatever they look like. Between files all text that is not a header is skipped, for example a mail
header. Text without any file header is an error.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.core.files import open_regular_file
from codetaste.errors import PatchError, PatchTooLarge, SourceError
from codetaste.source.patch.header import DiffSection, parse_git_header, parse_plain_header
from codetaste.source.patch.hunks import MAX_RUNS, line_at, read_binary, read_hunks
from codetaste.source.patch.model import Patch
from codetaste.source.patch.names import make_file_diff, strip_level

if TYPE_CHECKING:
    from pathlib import Path

MAX_PATCH_BYTES = 256 * 1024**2
"""Size limit of a patch that is read, and of one that is extracted from a sandbox."""
MAX_FILES = 200_000

_START = re.compile(rb"^(?:diff --(?:git|cc|combined) |--- |@@ -|@@@ )", re.MULTILINE)
_FRAGMENT = re.compile(rb"@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@")
_COMBINED = re.compile(rb"diff --(?:cc|combined) |@@@ ")


def parse_patch(content: bytes) -> Patch:
    r"""Parse a patch; blank content is a patch without files. Only ``\n`` ends a line.

    Raises:
        PatchError: ``content`` is not a patch, ends too early, or is a combined diff; with the line.
        PatchTooLarge: it has more than 200,000 files or two million changed places.
    """
    sections: list[DiffSection] = []
    at = runs = 0
    if content.count(b"\ndiff --git ") > MAX_FILES:  # inside a hunk no line begins like this
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
        raise PatchError("not a patch: it has no file header ('diff --git' or '---' and '+++')")
    strip = strip_level(sections, content)
    return Patch(tuple(make_file_diff(section, strip, content) for section in sections), strip)


def read_patch(path: Path, limit: int = MAX_PATCH_BYTES) -> bytes:
    """Return the content of the patch file ``path``.

    Raises:
        PatchTooLarge: it has more than ``limit`` bytes.
        SourceError: it cannot be read, or is not a file.
    """
    try:
        with open_regular_file(path) as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > limit else file.read(limit + 1)
    except OSError as error:
        raise SourceError(f"{path}: cannot be read: {error.strerror or error}") from error
    if max(size, len(content)) > limit:
        raise PatchTooLarge(
            f"{path}: a patch of {max(size, len(content)):,} bytes; no more than {limit:,} are read"
        )
    return content


def _too_many() -> PatchTooLarge:
    return PatchTooLarge(f"the patch changes more than {MAX_FILES:,} files or {MAX_RUNS:,} places in them")


def _section(content: bytes, at: int) -> DiffSection | None:
    """Read the file header at ``at``; None if the line only looks like the start of one."""
    if _COMBINED.match(content, at):
        raise PatchError(
            f"line {line_at(content, at)}: a combined diff (of a merge) does not apply to a single tree; "
            "make the patch against one parent",
            line=line_at(content, at),
        )
    if content.startswith(b"@@ -", at):
        if _FRAGMENT.match(content, at):
            line = line_at(content, at)
            raise PatchError(f"line {line}: a hunk without a file header", line=line)
        return None
    return (
        parse_git_header(content, at) if content.startswith(b"diff", at) else parse_plain_header(content, at)
    )


def _read(section: DiffSection, content: bytes) -> int:
    """Read the body after the header; return the position of its end."""
    at = read_hunks(content, section.body, section.removed, section.added)
    if at == section.body and section.git:
        binary = read_binary(content, at)
        section.binary, section.declared_bytes, at = binary.found, binary.declared_bytes, binary.end
        if not (section.binary or section.changes_metadata):
            line = line_at(content, section.start)
            raise PatchError(f"line {line}: a file header with nothing after it", line=line)
    section.end = at
    return at
