"""Long texts of a run directory, each stored once under the SHA-256 of its bytes.

So the journal's lines stay short.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import anyio.to_thread

from codetaste.core.files import read_regular_file, storage_error, sync_directory, write_atomically
from codetaste.errors import JournalError

if TYPE_CHECKING:
    from pathlib import Path

BLOBS_FOLDER = "blobs"
"""The folder of a run for its long texts."""
_DIGEST = re.compile("[0-9a-f]{64}")


class Blobs:
    """Long texts by content hash, beneath ``directory``."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: set[str] = set()

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
        return await anyio.to_thread.run_sync(self.read, digest)

    def path(self, digest: str) -> Path:
        """Return the path of the text with ``digest``."""
        return self._directory / digest[:2] / digest

    def _write_blob(self, data: bytes, digest: str) -> None:
        target = self.path(digest)
        if target.exists():
            return
        write_atomically(target, data)
        try:
            sync_directory(self._directory)
        except OSError as error:
            raise storage_error(error, target, JournalError) from error

    def read(self, digest: str) -> str:
        """Return the text whose digest is ``digest``, as ``load`` does; does blocking I/O."""
        if _DIGEST.fullmatch(digest) is None:  # it becomes a path
            raise JournalError(f"{digest[:100]!r} is not the digest of a stored text")
        path = self.path(digest)
        try:
            data = read_regular_file(path)
        except FileNotFoundError as error:
            raise JournalError(f"{path} is missing; restore it, or rerun the job that wrote it") from error
        except OSError as error:
            raise storage_error(error, path, JournalError) from error
        if hashlib.sha256(data).hexdigest() != digest:
            raise JournalError(
                f"{path} is damaged: its content does not match its hash; rerun the job that wrote it"
            )
        return data.decode("utf-8", "surrogatepass")
