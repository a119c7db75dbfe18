"""Bounded output of a command: its beginning and its end, within a limit of memory."""

from __future__ import annotations


class BoundedOutput:
    """One stream of at most ``limit`` bytes, with a line in the middle about what was left out."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._first = bytearray()
        self._last = bytearray()
        self.total = 0

    @property
    def truncated(self) -> bool:
        """Whether something was left out."""
        return self.total > self._limit

    def add(self, chunk: bytes) -> None:
        """Take the next piece of the stream."""
        self.total += len(chunk)
        room = self._limit - len(self._first)
        self._first += chunk[:room]
        self._last += chunk[room:]
        if len(self._last) > 2 * self._limit:
            del self._last[: -self._limit]

    def content(self) -> bytes:
        """Return the stored bytes: at most ``limit`` with the note, which alone may be longer."""
        if not self.truncated:
            return bytes(self._first)
        note = b"\n[... %d of %d bytes left out ...]\n"
        room = max(0, self._limit - len(note % (self.total, self.total)))
        head, tail = room - room // 2, room // 2
        last = self._first[len(self._first) - tail :] + self._last
        return bytes(self._first[:head] + note % (self.total - room, self.total) + last[len(last) - tail :])
