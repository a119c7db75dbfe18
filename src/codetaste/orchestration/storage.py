"""The run directory as storage: its lock, its store of long texts, and errors of the disk.

Long texts are stored once, under the SHA-256 of their bytes, so that the journal's lines stay short.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import itertools
import os
import socket
import time
from typing import TYPE_CHECKING

import anyio.to_thread

from codetaste.errors import JournalError, RunBusy, StorageFull

if TYPE_CHECKING:
    from pathlib import Path

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}
_LOCK_FILE = "lock"
_LOCK_TRIES = 10


def storage_error(error: OSError, path: Path) -> JournalError:
    """Return the error of this package for ``error`` at ``path``: StorageFull if space or the disk failed."""
    if error.errno in _FULL:
        return StorageFull(f"{path}: {error.strerror}; free space on that disk, then repeat the command")
    return JournalError(f"{path}: {error.strerror or error}; the run directory must be readable and writable")


def lock_directory(directory: Path) -> int:
    """Lock ``directory`` (created if missing) until the returned descriptor is closed or this process ends.

    Raises:
        RunBusy: another process holds the lock.
        JournalError: the directory cannot be created or written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise storage_error(error, directory) from error
    try:
        _lock(descriptor)
        # For humans only; the kernel decides who owns the lock.
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    except OSError as error:
        owner = os.pread(descriptor, 300, 0).decode(errors="replace") or "another process"
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise RunBusy(f"{directory} is in use by {owner}; wait for it or stop it") from error
        raise storage_error(error, directory) from error
    return descriptor


def lock_owner(directory: Path) -> str:
    """Return which process works on a run directory ("process 42 on host"); "" if none does."""
    try:
        descriptor = os.open(directory / _LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return os.pread(descriptor, 300, 0).decode(errors="replace")
    finally:
        os.close(descriptor)
    return ""


def _lock(descriptor: int) -> None:
    """Take the lock; retry, since ``lock_owner`` in another process holds it for an instant."""
    for _ in range(_LOCK_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.01)
        else:
            return
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class Blobs:
    """Long texts by content hash, beneath ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: set[str] = set()
        self._serial = itertools.count()

    async def store(self, text: str) -> str:
        """Store ``text`` unless it is stored already, and return its digest; durable on return.

        Raises:
            StorageFull: no space left; no partial file remains.
        """
        data = text.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._known:
            await anyio.to_thread.run_sync(self._write_blob, data, digest)
            self._known.add(digest)
        return digest

    async def load(self, digest: str) -> str:
        """Return the text whose digest is ``digest``.

        Raises:
            JournalError: the text is missing or damaged.
        """
        data = await anyio.to_thread.run_sync(self._read_blob, digest)
        return data.decode("utf-8", "surrogatepass")

    def path(self, digest: str) -> Path:
        """Return the path of the text with ``digest``."""
        return self._directory / digest[:2] / digest

    def _write_blob(self, data: bytes, digest: str) -> None:
        target = self.path(digest)
        if target.exists():
            return
        temporary = target.with_name(f".{digest}.{os.getpid()}.{next(self._serial)}")
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                _write_durably(temporary, data)
                temporary.rename(target)
            finally:
                temporary.unlink(missing_ok=True)
            sync_directory(target.parent)
            sync_directory(self._directory)
        except OSError as error:
            raise storage_error(error, target) from error

    def _read_blob(self, digest: str) -> bytes:
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError as error:
            raise JournalError(f"{path} is missing; restore it, or rerun the job that wrote it") from error
        except OSError as error:
            raise storage_error(error, path) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise JournalError(
                f"{path} is damaged: its content does not match its hash; rerun the job that wrote it"
            )
        return data


def sync_directory(directory: Path) -> None:
    """Make the names in ``directory`` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_durably(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
