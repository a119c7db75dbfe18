"""A locked staging folder beside the target folder."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.core.files import locked, storage_error
from codetaste.errors import SourceError

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
    except OSError as error:
        raise storage_error(error, staging, SourceError) from error
    async with locked(to.parent):
        # After the lock was acquired, as its previous owner removes the folder at its end.
        try:
            await to_thread.run_sync(lambda: staging.mkdir(exist_ok=True))
        except OSError as error:
            raise storage_error(error, staging, SourceError) from error
        try:
            yield staging
        finally:
            with suppress(OSError):  # a folder with a partial download stays
                staging.rmdir()
