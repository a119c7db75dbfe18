"""The lock of the run directory."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING

from codetaste.core.files import storage_error, try_lock
from codetaste.errors import JournalError, RunBusy

if TYPE_CHECKING:
    from pathlib import Path


_LOCK_FILE = "lock"

_FLAGS = os.O_CLOEXEC | os.O_NONBLOCK  # without O_NONBLOCK, opening a pipe would wait for a writer
_LOCK_TRIES = 10


def lock_directory(directory: Path) -> int:
    """Lock ``directory`` (created if missing) until the returned descriptor is closed or this process ends.

    Raises:
        RunBusy: another process holds the lock.
        JournalError: the directory cannot be created or written.
    """
    descriptor = -1
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / _LOCK_FILE, os.O_RDWR | os.O_CREAT | _FLAGS, 0o644)
        if _lock(descriptor):
            # For humans only; the kernel decides who owns the lock.
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
            return descriptor
        owner = _read_owner(descriptor) or "another process"
    except OSError as error:
        if descriptor >= 0:
            os.close(descriptor)
        raise storage_error(error, f"{directory} cannot be the run directory", JournalError) from error
    os.close(descriptor)
    raise RunBusy(f"{directory} is in use by {owner}; wait for it or stop it")


def lock_owner(directory: Path) -> str:
    """Return which process works on a run directory ("process 42 on host"); "" if none does."""
    try:
        descriptor = os.open(directory / _LOCK_FILE, os.O_RDONLY | _FLAGS)
    except OSError:
        return ""
    try:
        return "" if try_lock(descriptor, shared=True) else _read_owner(descriptor)
    except OSError:
        return _read_owner(descriptor)
    finally:
        os.close(descriptor)


def _read_owner(descriptor: int) -> str:
    return os.pread(descriptor, 300, 0).decode(errors="replace")


def _lock(descriptor: int) -> bool:
    """Take the lock; retry, since ``lock_owner`` in another process holds it for an instant."""
    for _ in range(_LOCK_TRIES):
        if try_lock(descriptor):
            return True
        time.sleep(0.01)
    return try_lock(descriptor)
