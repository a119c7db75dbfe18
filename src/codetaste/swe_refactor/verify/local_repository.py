"""The dependencies of one project on this host: read by all its jobs at once, read-only, and written by one.

Sandboxes have it mounted. What a job has fetched is added after its build has ended; files that are there are
not changed. It is as trusted as the project: builds run code of the project while they fetch.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import locked, remove_tree, storage_error, write_atomically
from codetaste.core.hashing import json_digest
from codetaste.core.tar import DamagedTar, MemberKind, TarReader
from codetaste.errors import SandboxError
from codetaste.source.tree.writer import TreeLimits, name_problem

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, Mapping
    from contextlib import AbstractAsyncContextManager
    from io import BufferedWriter
    from pathlib import Path

    from codetaste.core.tar import TarMember

FOLDERS = ("maven", "gradle")
_LIMITS = TreeLimits()
_MAX_BYTES = 16 * 1024**3
_STAGE = "incoming-"
_TRACKING = "_remote.repositories"
"""Maven's list of the files that it has fetched, and from where: lists of several jobs are joined."""
_REPLACED = ("maven-metadata-", "resolver-status.properties")
"""Beginnings of names of files whose newest version counts."""
_LEFT_OUT = (".lastUpdated", ".lock", ".part", ".tmp")


@dataclass(frozen=True, slots=True)
class PreparedBuild:
    """A build that was proven to compile both sides.

    Attributes:
        jdk: feature release of the JDK that compiles them.
        jdks: all JDKs of its sandbox: folder by feature release.
        maven: release of its Maven, the first two numbers; zeros without one.
    """

    jdk: int
    jdks: Mapping[int, str]
    maven: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class LocalRepository:
    """The folder with the dependencies of a project."""

    folder: Path

    def path(self, name: str) -> Path:
        """Return the folder ``name``, one of FOLDERS, which exists after ``open``."""
        return self.folder / name

    async def open(self) -> None:
        """Make the folders.

        Raises:
            SandboxError: they cannot be made.
            StorageFull: no space left.
        """

        def make() -> None:
            for name in FOLDERS:
                self.path(name).mkdir(parents=True, exist_ok=True)
                self.path(name).chmod(0o755)

        try:
            await to_thread.run_sync(make)
        except OSError as error:
            raise storage_error(error, self.folder, SandboxError) from error

    def writing(self) -> AbstractAsyncContextManager[None]:
        """Lock it against all other jobs that would write to it, for the time of the block."""
        return locked(self.folder / "lock", SandboxError)

    def find(self, *keys: str) -> PreparedBuild | None:
        """Return what is known of a build with these keys; None if it was not prepared. Blocking."""
        try:
            data = json.loads(self._record(keys).read_text("utf-8"))
            jdks = {int(jdk): home for jdk, home in data["jdks"].items()}
            return PreparedBuild(data["jdk"], jdks, tuple(data["maven"]))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None

    async def add(self, name: str, archive: AsyncIterable[bytes]) -> None:
        """Add the files of a tar archive, whose members are below one folder, to the folder ``name``.

        Call it within ``writing``: what a killed writer left is removed.

        Raises:
            SandboxError: the archive is damaged or too large.
            StorageFull: no space left.
        """
        stage = self.folder / f"{_STAGE}{secrets.token_hex(6)}"
        merge = _Merge(self.path(name), stage)
        reader = TarReader(merge, _MAX_BYTES)
        try:
            await to_thread.run_sync(self._remove_left)
            await to_thread.run_sync(stage.mkdir)
            async for chunk in archive:
                await to_thread.run_sync(reader.feed, chunk)
            reader.feed(b"")
        except DamagedTar as error:
            raise SandboxError(f"the fetched dependencies cannot be read: {error}") from None
        except OSError as error:
            raise storage_error(error, self.folder, SandboxError) from error
        finally:
            merge.close()
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(remove_tree, stage)

    def _remove_left(self) -> None:
        for left in self.folder.glob(f"{_STAGE}*"):
            remove_tree(left)

    def record(self, prepared: PreparedBuild, *keys: str) -> None:
        """Remember that all is there that the build with these keys needs. Blocking.

        Raises:
            StorageFull: no space left.
            JournalError: it cannot be written.
        """
        self._record(keys).parent.mkdir(exist_ok=True)
        write_atomically(self._record(keys), json.dumps(asdict(prepared)))

    def _record(self, keys: tuple[str, ...]) -> Path:
        return self.folder / "prepared" / f"{json_digest(list(keys))}.json"


class _Merge:
    """Puts the files of an archive into a folder; a ``TarHandler``."""

    def __init__(self, into: Path, stage: Path) -> None:
        self._into, self._stage = into, stage
        self._target: Path | None = None
        self._file: BufferedWriter | None = None
        self._executable = False

    def member(self, member: TarMember) -> bool:
        """Receive a member; files that are there are left out."""
        _, _, name = member.name.removeprefix(b"/").partition(b"/")
        if member.kind is not MemberKind.FILE or not name or name_problem(name, _LIMITS):
            return False
        base = os.fsdecode(name.rpartition(b"/")[2])
        if base.endswith(_LEFT_OUT):
            return False
        target = self._into / os.fsdecode(name)
        if target.exists() and base != _TRACKING and not base.startswith(_REPLACED):
            return False
        self._target, self._executable = target, member.executable
        self._file = (self._stage / "file").open("wb")
        return True

    def content(self, chunk: bytes) -> None:
        """Receive a piece of the file."""
        if self._file is not None:
            self._file.write(chunk)

    def close(self) -> None:
        """Close the file of a member that has no end."""
        if self._file is not None:
            self._file.close()

    def end(self) -> None:
        """Put the file into its place at once, so that no reader sees a part of it."""
        if self._file is None or self._target is None:
            return
        staged, target = self._stage / "file", self._target
        self._file.close()
        self._file = None
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.name == _TRACKING and target.exists():
            lines = [*target.read_bytes().splitlines(), *staged.read_bytes().splitlines()]
            staged.write_bytes(b"".join(line + b"\n" for line in dict.fromkeys(lines)))
        staged.chmod(0o755 if self._executable else 0o644)
        shutil.move(staged, target)
