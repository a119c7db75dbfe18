"""``Content``: the content of one file of an image, on disk or, while it is small, in memory."""

from __future__ import annotations

import io
import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MEMORY_BYTES = 32 * 1024**2
WINDOW_BYTES = 4 * 1024**2
"""How much is looked at at once."""
HEAD_BYTES = 512
_READ_BYTES = 1024**2


class TooLarge(Exception):
    """More than the limit was to be stored."""


@dataclass(slots=True)
class Content:
    """An open file, which its creator closes; ``head`` are its first bytes."""

    size: int
    head: bytes
    _file: IO[bytes]

    def open(self) -> IO[bytes]:
        """Return the file, at its beginning."""
        self._file.seek(0)
        return self._file

    def windows(self, overlap: int) -> Iterator[bytes]:
        """Yield the content in pieces that end with a line where there is one, and overlap."""
        if self.size <= WINDOW_BYTES:
            yield self.read()
            return
        file, carry = self.open(), b""
        while piece := file.read(WINDOW_BYTES):
            window = carry + piece
            yield window
            # The last line is incomplete unless it ends here; it begins the next piece.
            line_start = window.rfind(b"\n", -WINDOW_BYTES // 4) + 1 or len(window)
            carry = window[max(0, min(line_start, len(window) - overlap)) :]

    def read(self, size: int = -1) -> bytes:
        """Return the content, or its beginning."""
        return self.open().read(size)

    def close(self) -> None:
        """Free its memory or its file."""
        self._file.close()


class ContentWriter:
    """Stores a content that comes in pieces, up to ``limit`` bytes."""

    def __init__(self, limit: int) -> None:
        self._file: IO[bytes] = io.BytesIO()
        self._limit, self._in_memory = limit, True
        self.size = 0

    def write(self, piece: bytes) -> None:
        """Add a piece.

        Raises:
            TooLarge: the limit is exceeded.
            OSError: the temporary file cannot be written.
        """
        self.size += len(piece)
        if self.size > self._limit:
            self.close()
            raise TooLarge
        if self._in_memory and self.size > MEMORY_BYTES:
            stored = self._file
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the content
            self._file.write(stored.getbuffer())  # type: ignore[attr-defined]
            stored.close()
            self._in_memory = False
        self._file.write(piece)

    def finish(self) -> Content:
        """Return what was written."""
        self._file.seek(0)
        head = self._file.read(HEAD_BYTES)
        return Content(self.size, head, self._file)

    def close(self) -> None:
        """Forget what was written."""
        self._file.close()


def content_of(data: bytes) -> Content:
    """Return a content in memory."""
    return Content(len(data), data[:HEAD_BYTES], io.BytesIO(data))


def store(read: Callable[[int], bytes], limit: int, check: Callable[[], None]) -> Content:
    """Store what ``read`` returns until it returns nothing.

    Args:
        read: of a stream.
        limit: bytes.
        check: called for every piece; it raises to cancel.

    Raises:
        TooLarge: the limit is exceeded.
        OSError: the temporary file cannot be written.
    """
    writer = ContentWriter(limit)
    try:
        while piece := read(_READ_BYTES):
            check()
            writer.write(piece)
    except BaseException:
        writer.close()
        raise
    return writer.finish()
