"""Explain why a patch does not apply, and whether it was made against R."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.core.text import printable_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.source.patch.model import Patch

IndexEntries = dict[bytes, tuple[bytes, bytes]]
"""Mode and object hash (hex) of files and links, by name."""

_ERROR = re.compile(r"^error: (.+)$", re.MULTILINE)
_HUNK_FAILED = re.compile(r"patch failed: (.*):(\d+)\Z")
_WHAT_FAILED = (
    ("patch does not apply", "its lines differ from R's"),
    ("does not exist in index", "R has no such file"),
    ("already exists in index", "R has that file already"),
)
_OFFSET = re.compile(r"^Hunk #\d+ succeeded at \d+ \(offset -?\d+ lines?\)\.$", re.MULTILINE)
_NULL = re.compile(r"0+\Z")


def foreign_files(patch: Patch, before: IndexEntries) -> tuple[str, ...]:
    """Return the paths whose state in R is not the one that ``patch`` was made from.

    Args:
        patch: a patch; its index lines name the contents that it was made from.
        before: the entries of R that the patch names.
    """
    found: dict[str, None] = {}
    made: set[str] = set()
    for file in patch.files:
        if file.old is not None and file.old not in made:
            entry = before.get(os.fsencode(file.old))
            named = "" if _NULL.match(file.old_blob) else file.old_blob
            if entry is None or not entry[1].startswith(named.encode()):
                found[file.old] = None
        elif file.old is None and file.new not in made and os.fsencode(file.new or "") in before:
            found[file.new or ""] = None
        made.update(filter(None, (file.old, file.new)))
    return tuple(found)


def foreign_file_notes(foreign: Sequence[str]) -> list[str]:
    """Return a note if the patch was made against files other than R's."""
    return [f"the patch was made against another commit: {_which(foreign)}"] if foreign else []


def moved_hunks(output: str) -> list[str]:
    """Return a note on hunks that apply at other lines than stated, given the output of ``git apply -v``."""
    many = len(_OFFSET.findall(output))
    return [f"{many} hunk(s) of the patch apply at other lines than they state"] if many else []


def failure_reason(complaint: str, foreign: Sequence[str]) -> str:
    """Return in one line why the patch does not apply.

    Args:
        complaint: the standard error of ``git apply``.
        foreign: the result of ``foreign_files``.
    """
    errors = _ERROR.findall(complaint)
    failed = {name for error in errors for what, _ in _WHAT_FAILED if (name := _before(error, f": {what}"))}
    why = _first(errors) or (complaint.strip().splitlines() or ["git gave no reason"])[0]
    more = f" (the first of {len(failed)} such files)" if len(failed) > 1 else ""
    base = f"; it was made against another commit: {_which(foreign)}" if foreign else ""
    return f"the patch does not apply: {why}{more}{base}"


def _first(errors: Sequence[str]) -> str:
    if not errors:
        return ""
    if hunk := _HUNK_FAILED.match(errors[0]):
        return f"{_shown(hunk[1])}, hunk at line {hunk[2]}: its lines differ from R's"
    for what, why in _WHAT_FAILED:
        if name := _before(errors[0], f": {what}"):
            return f"{_shown(name)}: {why}"
    return errors[0][:300]


def _before(text: str, ending: str) -> str:
    return text.removesuffix(ending) if text.endswith(ending) else ""


def _which(foreign: Sequence[str]) -> str:
    rest = f" and {len(foreign) - 1} more differ" if len(foreign) > 1 else " differs"
    return f"{_shown(foreign[0])}{rest} in R"


def _shown(path: str) -> str:
    return printable_name(os.fsencode(path))
