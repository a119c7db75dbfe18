"""A patch in pieces that a page's script loads one by one, and where each file's text is in them.

The pieces after each other are the patch file, so that their compressed forms after each other are it, too.
Places are numbers of lines, which stay what they are if a key in a line is removed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.site.trial.packed import gzip_bytes

if TYPE_CHECKING:
    from codetaste.site.trial.patch.marked_patch import MarkedPatch

_PIECE_BYTES = 512 * 1024
_MAX_BYTES = 32 * 1024**2
"""So much of a patch is in the site."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where the text of a file's changes is.

    Attributes:
        piece: number of the piece, from 0; None if the page does not have the text.
        start: its first line in the piece, from 0.
        end: the line after its last.
    """

    piece: int | None
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True)
class PatchPieces:
    """The pieces of a patch, and the place of each of its files.

    Attributes:
        spans: first byte and end of each piece in the patch.
        places: of the files, in order.
        complete: whether the pieces are the whole patch.
    """

    spans: tuple[tuple[int, int], ...] = ()
    places: tuple[FilePlace, ...] = ()
    complete: bool = False


def make_pieces(patch: MarkedPatch, *, max_bytes: int = _MAX_BYTES) -> PatchPieces:
    """Divide a patch at the beginnings of files; what is beyond ``max_bytes`` is in no piece."""
    if not patch.files:
        return PatchPieces()
    content = patch.content
    spans: list[tuple[int, int]] = []
    places: list[FilePlace] = []
    start = at = line = 0
    for each in patch.files:
        begin, end = each.file.span
        if end > max_bytes:
            places += [FilePlace(None)] * (len(patch.files) - len(places))
            return PatchPieces((*spans, *([(start, at)] if at > start else [])), tuple(places))
        if begin - start >= _PIECE_BYTES:
            spans.append((start, begin))
            start = at = begin
            line = 0
        first = line + content.count(b"\n", at, begin)
        line = first + content.count(b"\n", begin, end)
        places.append(FilePlace(len(spans), first, line))
        at = end
    return PatchPieces((*spans, (start, len(content))), tuple(places), patch.whole)


def packed_piece(patch: MarkedPatch, span: tuple[int, int]) -> bytes:
    """Return a piece in the format of gzip."""
    return gzip_bytes(patch.content[span[0] : span[1]])
