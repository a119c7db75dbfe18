"""Objects of a repository, in bulk, as ``git cat-file --batch`` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.mining.clones.git.stream import GitStream

BATCH = ("cat-file", "--batch=%(objectname) %(objecttype) %(objectsize) %(rest)", "--buffer")
"""Each line of its input is the name of an object; what follows a space is repeated, and here ignored."""
MAX_OBJECT_BYTES = 4 * 1024**2
"""Of a larger object only the beginning is read."""
_FIELDS = 3


class GitObject(NamedTuple):
    """An object; ``kind`` is "missing" if the repository does not have it."""

    name: str
    kind: str
    content: bytes


def read_objects(stream: GitStream) -> Iterator[GitObject]:
    """Yield the objects of the output of ``BATCH``, in the order of its input.

    Raises:
        SourceError: the output ends inside an object.
    """
    buffer = _Buffer(stream)
    while line := buffer.line():
        fields = line.decode("ascii", "replace").split()
        if len(fields) < _FIELDS or not fields[2].isdigit():
            yield GitObject(fields[0] if fields else "", "missing", b"")
            continue
        content = buffer.take(int(fields[2]))
        buffer.take(1)
        yield GitObject(fields[0], fields[1], content)


class _Buffer:
    """Lines and blocks of a stream."""

    def __init__(self, stream: GitStream) -> None:
        self._stream = stream
        self._data, self._at = b"", 0

    def line(self) -> bytes:
        """Return the next line with its end, b"" at the end of the stream."""
        while (end := self._data.find(b"\n", self._at)) < 0:
            if not self._more():
                return b""
        line = self._data[self._at : end + 1]
        self._at = end + 1
        return line

    def take(self, size: int) -> bytes:
        """Return the first ``MAX_OBJECT_BYTES`` of the next ``size`` bytes, and pass over the others."""
        parts, left = [], size
        while left:
            if self._at == len(self._data) and not self._more():
                raise SourceError("git ended inside an object")
            piece = self._data[self._at : self._at + left]
            self._at += len(piece)
            if size - left < MAX_OBJECT_BYTES:
                parts.append(piece[: MAX_OBJECT_BYTES - (size - left)])
            left -= len(piece)
        return b"".join(parts)

    def _more(self) -> bool:
        chunk = self._stream.read()
        self._data, self._at = self._data[self._at :] + chunk, 0
        return bool(chunk)
