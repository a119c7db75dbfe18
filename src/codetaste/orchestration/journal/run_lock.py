"""The lock of the run directory."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from typing import TYPE_CHECKING

from codetaste.core.files import storage_error
from codetaste.errors import RunBusy

if TYPE_CHECKING:
    from pathlib import Path


_LOCK_FILE = "lock"

_LOCK_TRIES = 10


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
