"""A locked staging folder beside the target folder."""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.source.tree.writer import storage_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def staging_folder(to: Path) -> AsyncIterator[Path]:
    """Yield the locked folder beside ``to`` in which ``to`` is built; a download stays there on failure.

    Other processes that build a folder in the same parent folder wait.

    Raises:
        StorageFull: no space left; SourceError: the folder cannot be created.
    """
    staging = to.with_name(f".{to.name}.fetch")
    try:
        await to_thread.run_sync(lambda: to.parent.mkdir(parents=True, exist_ok=True))
        descriptor = os.open(to.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(error, str(staging)) from error
    try:
        pause_s = 0.05
        while not _try_lock(descriptor):
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 1.0)
        # After the lock was acquired, as its previous owner removes the folder at its end.
        try:
            await to_thread.run_sync(lambda: staging.mkdir(exist_ok=True))
        except OSError as error:
            raise storage_error(error, str(staging)) from error
        try:
            yield staging
        finally:
            with suppress(OSError):  # a folder with a partial download stays
                staging.rmdir()
    finally:
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
