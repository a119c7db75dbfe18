"""The folder of a local sandbox on the host, its writable folders, and the owner of their files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.sandbox.base import GID, HOME, OUTPUT, TASK, TESTBED, UID

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

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
