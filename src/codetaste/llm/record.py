"""An append-only file of JSON lines that outlives its process: ledgers and cassettes.

An append is on disk before it returns, and whole or not there at all for whoever reads: lines of several
processes never mix, and a line that was torn by a crash is passed over.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from codetaste.errors import JournalError, StorageFull
from codetaste.llm.codec import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path


class Record:
    """One file of JSON objects, made with its folder at the first append.

    Without ``durable``, what was appended last may be lost when the machine stops, not when we do.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path, self._durable = path, durable
        self._lock = anyio.Lock()

    def read(self) -> Iterator[dict[str, Any]]:
        """Yield every whole line; blocking.

        Raises:
            JournalError: the file cannot be read.
        """
        try:
            with self.path.open("rb") as lines:
                for line in lines:
                    parsed = _parse(line)
                    if parsed is not None:
                        yield parsed
        except FileNotFoundError:
            return
        except OSError as error:
            raise JournalError(f"{self.path}: cannot be read: {error.strerror}") from error

    async def append(self, entries: Iterable[dict[str, Any]]) -> None:
        """Write ``entries``, one line each, and return when they are on disk, or with the system.

        Raises:
            StorageFull: no space is left.
            JournalError: the file cannot be written.
        """
        lines = "".join(canonical(entry) + "\n" for entry in entries).encode()
        # Not to be cut by a cancellation: what the caller learns must be what the disk says.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                await anyio.to_thread.run_sync(self._append, lines)

    def _append(self, lines: bytes) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                _write_whole(descriptor, lines, durable=self._durable)
            finally:
                os.close(descriptor)
        except OSError as error:
            kind = StorageFull if error.errno in {errno.ENOSPC, errno.EDQUOT} else JournalError
            raise kind(f"{self.path}: cannot be written: {error.strerror}") from error


def _write_whole(descriptor: int, lines: bytes, *, durable: bool) -> None:
    """Append, and fsync if ``durable``, or leave the file as it was; the caller holds the lock."""
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
