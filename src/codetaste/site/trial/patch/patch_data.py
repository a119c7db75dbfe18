"""What the page's script knows of a patch: its files, where their text is, and the matches in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.rules.registration import Direction
from codetaste.site.trial.visible_text import decoded_path, visible_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from codetaste.rules.scan.model import Match
    from codetaste.site.trial.patch.marked_patch import MarkedFile, MarkedPatch
    from codetaste.site.trial.patch.pieces import FilePlace, PatchPieces

_MAX_MATCHES = 20_000
"""So many matches of one kind in one file are shown; the counts are of all."""
_MAX_PATH_CHARS = 500


def patch_data(
    patch: MarkedPatch, pieces: PatchPieces, rules: Mapping[tuple[str, str], int]
) -> dict[str, Any]:
    """Return the data of ``patch.js``, JSON.

    A match is ``[first line, last line, rule]``; a rule is its position in the trial's list. ``a`` are
    matches of additive rules in the new file, ``r`` of reductive ones in the old, ``l`` of those in the new.

    Args:
        patch: the patch.
        pieces: of it.
        rules: positions of the rules by direction and id.
    """
    return {
        "files": [
            _file_data(file, place, rules) for file, place in zip(patch.files, pieces.places, strict=True)
        ],
        "pieces": len(pieces.spans),
        "bytes": patch.size,
    }


def _file_data(each: MarkedFile, place: FilePlace, rules: Mapping[tuple[str, str], int]) -> dict[str, Any]:
    counts, file = each.counts, each.file
    data: dict[str, Any] = {
        "path": shown_path(each.path),
        "counts": [counts.added, counts.removed, counts.hits_added, counts.hits_removed],
        "piece": place.piece,
        "lines": [place.start, place.end],
    }
    if file.old != file.new:
        data["old"] = None if file.old is None else shown_path(file.old)
        data["new"] = None if file.new is None else shown_path(file.new)
    if notes := file_notes(each):
        data["notes"] = notes
    if each.excluded:
        data["excluded"] = True
    matches = each.matches
    for key, direction, found in (
        ("a", Direction.ADDITIVE, matches.additive),
        ("r", Direction.REDUCTIVE, matches.reductive),
        ("l", Direction.REDUCTIVE, matches.remaining),
    ):
        if found:
            data[key] = _spans(found, direction, rules)
    return data


def file_notes(each: MarkedFile) -> list[str]:
    """Return what else is to be said of a file: that it is new, moved, binary, not counted."""
    file = each.file
    notes = []
    if file.old is None:
        notes.append("new file")
    elif file.new is None:
        notes.append("deleted")
    elif file.copied:
        notes.append(f"copied from {shown_path(file.old)}")
    elif file.old != file.new:
        notes.append(f"moved from {shown_path(file.old)}")
    if file.binary:
        notes.append("binary")
    if file.submodule:
        notes.append("submodule")
    if file.old_mode and file.new_mode and file.old_mode != file.new_mode:
        notes.append(f"mode {file.old_mode:o} → {file.new_mode:o}")
    if each.excluded:
        notes.append("not counted by PREC")
    return notes


def shown_path(path: str) -> str:
    """Return a path as text for people."""
    return visible_text(decoded_path(path), _MAX_PATH_CHARS)


def _spans(matches: Iterable[Match], direction: str, rules: Mapping[tuple[str, str], int]) -> list[list[int]]:
    found = {
        (match.start_line, match.end_line, rules.get((direction, match.rule_id), -1)) for match in matches
    }
    return [list(each) for each in sorted(found)[:_MAX_MATCHES]]
