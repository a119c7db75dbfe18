"""Files that are there whole or not at all: written under a temporary name, made durable, renamed."""

from __future__ import annotations

import errno
import os
import re
import secrets
from typing import TYPE_CHECKING

from codetaste.errors import JournalError, StorageFull

if TYPE_CHECKING:
    from pathlib import Path


_TEMPORARY = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}\.tmp")


def write_atomically(path: Path, content: str | bytes) -> Path:
    """Put ``content`` at ``path``, making folders as needed; blocks, so call it from a worker thread.

    Raises:
        StorageFull: no space left; what was at ``path`` is still there.
        JournalError: it cannot be written for another reason.
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
            _sync(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT}:
            raise StorageFull(f"{path}: no space left on the device; free some and run again") from error
        raise JournalError(f"{path}: cannot be written: {error.strerror or error}") from error
    return path


def sweep(folder: Path) -> None:
    """Remove what writers that were killed have left below ``folder``; blocks, as it looks at every file."""
    for path in folder.rglob(".*.tmp"):
        if (left := _TEMPORARY.fullmatch(path.name)) and not _alive(int(left[1])):
            path.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync(folder: Path) -> None:
    """Make a rename in ``folder`` durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
