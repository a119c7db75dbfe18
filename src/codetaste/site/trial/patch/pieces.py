"""A patch in pieces that a page's script loads one by one, and where each file's text is in them.

The pieces after each other are the patch file, so that their compressed forms after each other are it, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.site.trial.packed import gzip_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.site.trial.patch.marked_patch import MarkedFile, MarkedPatch

_PIECE_BYTES = 512 * 1024
_MAX_FILE_BYTES = 4 * 1024**2
"""So much of one file's changes is shown."""
_MAX_BYTES = 32 * 1024**2
"""So much of a patch is in the site."""


@dataclass(frozen=True, slots=True)
class FilePlace:
    """Where the text of a file's changes is: the piece, and the first and last byte in it.

    Attributes:
        piece: number of the piece, from 0; None if the page does not have the text.
        start: first byte in the piece, unpacked.
        end: byte after the last.
        cut_bytes: so many bytes at the end of the text are left out.
    """

    piece: int | None
    start: int = 0
    end: int = 0
    cut_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PatchPieces:
    """The pieces of a patch, and the place of each of its files.

    Attributes:
        spans: first byte and end of each piece in the patch.
        places: of the files, in order.
        complete: whether the pieces are the whole patch.
    """

    spans: tuple[tuple[int, int], ...]
    places: tuple[FilePlace, ...]
    complete: bool


def make_pieces(patch: MarkedPatch) -> PatchPieces:
    """Divide a patch that was read as a whole; one without files has no pieces."""
    spans: list[tuple[int, int]] = []
    places: list[FilePlace] = []
    start = 0
    for number, each in enumerate(patch.files):
        begin, end = each.file.span
        if begin - start >= _PIECE_BYTES:
            spans.append((start, begin))
            start = begin
        if end > _MAX_BYTES:
            places += [FilePlace(None, cut_bytes=_size(file)) for file in patch.files[number:]]
            return PatchPieces(
                (*spans, *([(start, begin)] if begin > start else [])), tuple(places), complete=False
            )
        cut = max(0, end - begin - _MAX_FILE_BYTES)
        places.append(FilePlace(len(spans), begin - start, end - start - cut, cut))
    if patch.files:
        spans.append((start, len(patch.content)))
    return PatchPieces(tuple(spans), tuple(places), complete=patch.whole and bool(patch.files))


def packed_piece(patch: MarkedPatch, span: Sequence[int]) -> bytes:
    """Return a piece in the format of gzip."""
    return gzip_bytes(patch.content[span[0] : span[1]])


def _size(file: MarkedFile) -> int:
    start, end = file.file.span
    return end - start
