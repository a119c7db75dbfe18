"""Atomic file writes: write under a temporary name, fsync, rename; and removal of stale temporary files."""

from __future__ import annotations

import errno
import os
import re
import secrets
from typing import TYPE_CHECKING

from codetaste.errors import JournalError, StorageFull

if TYPE_CHECKING:
    from pathlib import Path


_TEMPORARY_NAME = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}\.tmp")


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Write ``content`` to ``path`` and create its folders as needed. Call it from a worker thread.

    Raises:
        StorageFull: no space left; the previous file at ``path`` is unchanged.
        JournalError: the file cannot be written for another reason.
    """
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            _sync_folder(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(f"{path}: no space left on the device; free some and run again") from error
        raise JournalError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files of killed writers below ``folder``. Call it from a worker thread."""
    for path in folder.rglob(".*.tmp"):
        if (match := _TEMPORARY_NAME.fullmatch(path.name)) and not _process_exists(int(match[1])):
            path.unlink(missing_ok=True)


def _process_exists(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG}


def storage_error(error: OSError, path: Path) -> JournalError:
    """Return the error of this package for ``error`` at ``path``: StorageFull if space or the disk failed."""
    if error.errno in _FULL:
        return StorageFull(f"{path}: {error.strerror}; free space on that disk, then repeat the command")
    return JournalError(f"{path}: {error.strerror or error}; the run directory must be readable and writable")


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
