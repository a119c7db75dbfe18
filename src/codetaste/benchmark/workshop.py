"""A folder beside the one that is to be made, for whoever makes it: one at a time."""

from __future__ import annotations

import fcntl
import os
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.source.writing import storage_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@asynccontextmanager
async def workshop(to: Path) -> AsyncIterator[Path]:
    """Hold the folder beside ``to`` in which it is made; what was downloaded stays there on failure.

    Whoever else makes a folder in the same parent folder waits.

    Raises:
        StorageFull: no space left; SourceError: the folder cannot be made.
    """
    shop = to.with_name(f".{to.name}.fetch")
    try:
        await to_thread.run_sync(lambda: to.parent.mkdir(parents=True, exist_ok=True))
        descriptor = os.open(to.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise storage_error(error, str(shop)) from error
    try:
        pause_s = 0.05
        while not _locks(descriptor):
            await anyio.sleep(pause_s)
            pause_s = min(pause_s * 1.5, 1.0)
        # Not before: whoever had the lock has tidied up behind them.
        try:
            await to_thread.run_sync(lambda: shop.mkdir(exist_ok=True))
        except OSError as error:
            raise storage_error(error, str(shop)) from error
        try:
            yield shop
        finally:
            _tidy(shop)
    finally:
        os.close(descriptor)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _tidy(shop: Path) -> None:
    """Remove the folder if nothing was kept in it."""
    with suppress(OSError):
        shop.rmdir()
