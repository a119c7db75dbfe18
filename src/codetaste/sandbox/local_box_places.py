"""The folder of a local box, with its writable places as folders out here, and who owns what is in them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from codetaste.sandbox.box import GID, HOME, OUTPUT, TASK, TESTBED, UID

if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "box-"
TEMPORARY = "/tmp"  # noqa: S108 (inside)
_NAMES = {TESTBED: "testbed", TASK: "task_description", OUTPUT: "output", HOME: "home", TEMPORARY: "tmp"}


@dataclass(frozen=True, slots=True)
class Owner:
    """Whom files belong to out here: uid 1000 itself where we may say so, and us where it is only a name."""

    real: bool

    def take(self, descriptor: int) -> None:
        """Give away an open file or folder."""
        if self.real:
            os.fchown(descriptor, UID, GID)

    def take_link(self, name: str, folder: int) -> None:
        """Give away the link ``name`` in an open folder."""
        if self.real:
            os.chown(name, UID, GID, dir_fd=folder, follow_symlinks=False)


def make_places(folder: Path, owner: Owner) -> Mapping[str, Path]:
    """Make the places in ``folder``; return where each path inside is."""
    places = {path: folder / name for path, name in _NAMES.items()}
    for path in places.values():
        path.mkdir()
        path.chmod(0o755)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        owner.take(descriptor)
        os.close(descriptor)
    places[TEMPORARY].chmod(0o1777)
    return places


def remove(folder: Path) -> None:
    """Remove ``folder`` with all that agents have left in it, also where they have locked us out. Blocks."""
    # Not shutil.rmtree: it gives up on trees that are nested too deeply.
    remove_all = ["/bin/rm", "-rf", "--", str(folder)]
    if subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL).returncode:
        subprocess.run(
            ["/bin/chmod", "-R", "u+rwX", "--", str(folder)], check=False, stderr=subprocess.DEVNULL
        )
        subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL)


def new_folder(within: Path) -> tuple[Path, int]:
    """Make a folder with a locked file, returned open: who finds it can tell that its maker lives. Blocks."""
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=within))
    lock = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    return folder, lock


def remove_abandoned(within: Path) -> None:
    """Remove folders whose makers were killed. Blocks."""
    for folder in within.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            lock = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove(folder)
            finally:
                os.close(lock)
