"""Append-only JSON-lines files that survive a crash: ledgers, cassettes and transcripts.

An append is on disk when it returns, and is atomic for readers: lines of several processes never mix, and a
line cut off by a crash is skipped.
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.core.files import MAX_LINE_BYTES, lines_of, open_regular_file, storage_error
from codetaste.core.hashing import canonical_json
from codetaste.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


class JsonlFile:
    """One file of JSON objects; the first append creates it and its folder.

    Without ``durable``, the last lines may be lost if the machine stops, but not if the process does.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path, self._durable = path, durable
        self._lock = anyio.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield every complete line; does blocking I/O.

        Raises:
            JournalError: the file cannot be read.
        """
        return (line for _, line in self._numbered_lines())

    def read_into(self, take: Callable[[dict[str, Any]], None]) -> None:
        """Pass every complete line to ``take``; does blocking I/O.

        Raises:
            JournalError: the file cannot be read, or ``take`` raises an error for a line with wrong values.
        """
        for number, line in self._numbered_lines():
            try:
                take(line)
            except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
                problem = f"{self.path}, line {number}: a damaged line ({error!r}); restore the file"
                raise JournalError(problem) from error

    def _numbered_lines(self) -> Iterator[tuple[int, dict[str, Any]]]:
        try:
            with open_regular_file(self.path) as file:
                for number, line in enumerate(lines_of(file, self.path), 1):
                    parsed = _parse(line)
                    if parsed is not None:
                        yield number, parsed
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error.strerror}") from error

    async def append(self, entries: Iterable[dict[str, Any]]) -> None:
        """Write ``entries``, one line each; return when they are on disk, or written if not ``durable``.

        Raises:
            StorageFull: no space is left.
            JournalError: the file cannot be written, or an entry is longer than any reader takes.
        """
        lines = [f"{canonical_json(entry)}\n".encode() for entry in entries]
        if (longest := max(map(len, lines), default=0)) > MAX_LINE_BYTES:
            raise JournalError(f"{self.path}: a line of {longest:,} bytes cannot be written")
        # Shielded from cancellation: the outcome for the caller must agree with the file.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await anyio.to_thread.run_sync(self._append, b"".join(lines))

    def _append(self, lines: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _append_or_restore(descriptor, lines, durable=self._durable)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise storage_error(error, f"{self.path}: cannot be written", JournalError) from error


def _append_or_restore(descriptor: int, lines: bytes, *, durable: bool) -> None:
    """Append, and fsync if ``durable``; on an error restore the file. The caller holds the lock."""
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        lines = b"\n" + lines
    try:
        left = memoryview(lines)
        while left:
            left = left[os.write(descriptor, left) :]
        if durable:
            os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None
