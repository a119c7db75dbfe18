"""The context-free text of a diff, filtered and compressed piece by piece.

From the output of ``git diff`` all is removed that is no change: lines of context, the code that git
repeats behind ``@@``, and the hashes in the header, whose length depends on the clone. ``git diff -U0`` is
no stand-in: it compares files in another way, and its added and removed lines are not those of the patch.
"""

from __future__ import annotations

import re
import zlib

from codetaste.mining.prefilter.diff import GZIP_LEVEL

_GZIP_WBITS = 31
_MAX_LINE_BYTES = 1 << 20
_NO_CHANGE = re.compile(rb"^(?:(?:(?: |index )[^\n]*\n)+|(@@ -[0-9,]+ \+[0-9,]+ @@) [^\n]*)", re.MULTILINE)
"""A line of code in a diff begins with a space, ``+`` or ``-``, so that no code is taken for a header."""


class ContextFreeText:
    """Gets a diff in pieces; ``size`` counts its bytes without what is removed."""

    def __init__(self) -> None:
        self.size = 0
        self._gzip = zlib.compressobj(GZIP_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
        self._compressed: list[bytes] = []
        self._rest = b""
        self._inside_line = self._changed_line = False

    def add(self, piece: bytes) -> None:
        """Take the next piece. Only its last line is stored, and of a very long line nothing."""
        data = self._rest + piece
        if self._inside_line:
            end = data.find(b"\n") + 1
            if self._changed_line:
                self._write(data[: end or len(data)])
            self._inside_line = not end
            data = data[end:] if end else b""
        end = data.rfind(b"\n") + 1
        self._write(_NO_CHANGE.sub(rb"\1", data[:end]))
        self._rest = data[end:]
        if len(self._rest) > _MAX_LINE_BYTES:
            self._changed_line = not self._rest.startswith(b" ")
            if self._changed_line:
                self._write(self._rest)
            self._rest, self._inside_line = b"", True

    def finish(self) -> bytes:
        """Return the compressed text."""
        self._write(_NO_CHANGE.sub(rb"\1", self._rest))
        self._rest = b""
        self._compressed.append(self._gzip.flush())
        return b"".join(self._compressed)

    def _write(self, text: bytes) -> None:
        self.size += len(text)
        self._compressed.append(self._gzip.compress(text))
