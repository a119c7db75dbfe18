"""``HeadTailFile``: an agent's raw output on disk, complete or, if it is too long, its beginning and end."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HEAD_BYTES, TAIL_BYTES = 64 * 1024**2, 4 * 1024**2


class HeadTailFile:
    """One stream in one file; to be called from a worker thread, one call at a time.

    Writing does not raise; ``fault`` is the first error.

    Raises:
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("wb")
        self._head_left, self._tail_bytes = head, tail
        self._tail, self._dropped = bytearray(), 0
        self.total = 0
        self.fault: OSError | None = None

    def write(self, chunk: bytes) -> None:
        """Write the next piece."""
        self.total += len(chunk)
        first, rest = chunk[: self._head_left], chunk[self._head_left :]
        if first:
            self._head_left -= len(first)
            self._append(first)
        self._tail += rest
        if len(self._tail) > 2 * self._tail_bytes:
            self._dropped += len(self._tail) - self._tail_bytes
            del self._tail[: -self._tail_bytes]

    def close(self) -> None:
        """Write the end of the stream, after a line with the number of bytes left out."""
        last = bytes(self._tail[-self._tail_bytes :])
        left_out = len(self._tail) - len(last) + self._dropped
        if left_out:
            self._append(b'\n{"type": "codetaste", "bytes_left_out": %d}\n' % left_out)
        self._append(last)
        with contextlib.suppress(OSError):  # ``fault`` has it already
            self._file.close()

    def _append(self, piece: bytes) -> None:
        try:
            self._file.write(piece)
            self._file.flush()
        except OSError as error:
            self.fault = self.fault or error
