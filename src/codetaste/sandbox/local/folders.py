"""The folder of a local sandbox on the host, its writable folders, and the owner of their files."""

from __future__ import annotations

import contextlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.core.files import remove_tree, try_lock
from codetaste.sandbox.base import GID, HOME, OUTPUT, TASK, TESTBED, UID

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "sandbox-"
TMP = "/tmp"  # noqa: S108 (inside)
_NAMES = {TESTBED: "testbed", TASK: "task_description", OUTPUT: "output", HOME: "home", TMP: "tmp"}


@dataclass(frozen=True, slots=True)
class FileOwner:
    """The owner of files on the host: uid 1000 if ``real``, else this user, mapped to it in the sandbox."""

    real: bool

    def chown(self, descriptor: int) -> None:
        """Set the owner of an open file or folder."""
        if self.real:
            os.fchown(descriptor, UID, GID)

    def chown_link(self, name: str, folder: int) -> None:
        """Set the owner of the link ``name`` in an open folder."""
        if self.real:
            os.chown(name, UID, GID, dir_fd=folder, follow_symlinks=False)


def make_folders(folder: Path, owner: FileOwner) -> Mapping[str, Path]:
    """Create the writable folders in ``folder``; return the host folder of each path in the sandbox."""
    folders = {path: folder / name for path, name in _NAMES.items()}
    for path in folders.values():
        path.mkdir()
        path.chmod(0o755)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        owner.chown(descriptor)
        os.close(descriptor)
    folders[TMP].chmod(0o1777)
    return folders


def make_sandbox_folder(within: Path) -> tuple[Path, int]:
    """Create a folder with a locked file, returned open: the lock shows that its creator lives."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=within))
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try_lock(lock)
    return folder, lock


def remove_abandoned(within: Path) -> None:
    """Remove the folders of killed runs."""
    for folder in within.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                if try_lock(lock):
                    remove_tree(folder)
            finally:
                os.close(lock)
