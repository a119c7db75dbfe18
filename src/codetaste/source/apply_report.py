"""Why a patch does not apply, and whether it was made against R at all."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from codetaste.source.writing import show

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.source.file_diff import Patch

Entries = dict[bytes, tuple[bytes, bytes]]
"""Mode and object (hex) of files and links, by name."""

_ERROR = re.compile(r"^error: (.+)$", re.MULTILINE)
_HUNK_FAILED = re.compile(r"patch failed: (.*):(\d+)\Z")
_WHAT_FAILED = (
    ("patch does not apply", "its lines are not R's"),
    ("does not exist in index", "R has no such file"),
    ("already exists in index", "R has that file already"),
)
_OFFSET = re.compile(r"^Hunk #\d+ succeeded at \d+ \(offset -?\d+ lines?\)\.$", re.MULTILINE)
_NULL = re.compile(r"0+\Z")


def strangers(patch: Patch, before: Entries) -> tuple[str, ...]:
    """Return the files of R that the patch knows otherwise, by name: with other contents, or not there.

    Args:
        patch: whose index lines name the contents that it was made from.
        before: R, as far as the patch names its files.
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


def base_notes(others: Sequence[str]) -> list[str]:
    """Say that a patch was made against other files than R's, if it was."""
    return [f"the patch was made against another commit: {_which(others)}"] if others else []


def offsets(said: str) -> list[str]:
    """Say how many hunks git found in other lines than the patch names, from what ``git apply -v`` said."""
    many = len(_OFFSET.findall(said))
    return [f"{many} hunk(s) of the patch apply to other lines than they name"] if many else []


def reason(complaint: str, others: Sequence[str]) -> str:
    """Return why the patch does not apply, in a line, from what git complained of.

    Args:
        complaint: the standard error of ``git apply``.
        others: from ``strangers``.
    """
    errors = _ERROR.findall(complaint)
    failed = {name for error in errors for what, _ in _WHAT_FAILED if (name := _before(error, f": {what}"))}
    why = _first(errors) or (complaint.strip().splitlines() or ["git gave no reason"])[0]
    more = f" (the first of {len(failed)} such files)" if len(failed) > 1 else ""
    base = f"; it was made against another commit: {_which(others)}" if others else ""
    return f"the patch does not apply: {why}{more}{base}"


def _first(errors: Sequence[str]) -> str:
    if not errors:
        return ""
    if hunk := _HUNK_FAILED.match(errors[0]):
        return f"{_shown(hunk[1])}, hunk at line {hunk[2]}: its lines are not R's"
    for what, why in _WHAT_FAILED:
        if name := _before(errors[0], f": {what}"):
            return f"{_shown(name)}: {why}"
    return errors[0][:300]


def _before(text: str, ending: str) -> str:
    return text.removesuffix(ending) if text.endswith(ending) else ""


def _which(others: Sequence[str]) -> str:
    rest = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return f"R's {_shown(others[0])}{rest} is not what it says"


def _shown(path: str) -> str:
    return show(os.fsencode(path))
