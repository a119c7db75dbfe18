"""A Docker engine whose files lie on a small disk of its own: a file with a file system, mounted as root."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.system.dockerd import Daemon, DockerEngine

_ALONE = ("--bridge=none", "--iptables=false")
"""It shares nothing with another engine of this machine."""
_PIECE = 1024**2


@dataclass(frozen=True, slots=True)
class SmallEngine:
    """The engine, and where its disk is mounted."""

    engine: DockerEngine
    disk: Path

    def leave(self, count: int) -> None:
        """Take up all room but ``count`` bytes."""
        room = shutil.disk_usage(self.disk).free - count
        subprocess.run(["fallocate", "-l", str(room), str(self.disk / "ballast")], check=True)


@contextlib.contextmanager
def small_engine(driver: str, size: int, *commands: Sequence[str]) -> Iterator[SmallEngine]:
    """Start an engine with storage driver ``driver`` on a disk of ``size`` bytes.

    ``commands`` make the disk ready, the first before it is mounted: of each the last word is added here.
    """
    with (
        tempfile.TemporaryDirectory(prefix="codetaste-small-") as name,
        tempfile.NamedTemporaryFile(prefix="codetaste-small-", dir=_room_for(size)) as file,
    ):
        folder, disk = Path(name), file.name
        data = folder / "data"
        data.mkdir()
        file.truncate(size)
        made, *later = commands
        run([*made, disk])
        run(["mount", "-o", "loop", disk, str(data)])
        try:
            for command in later:
                run([*command, str(data)])
            daemon = Daemon(folder, (*_ALONE, f"--storage-driver={driver}"))
            try:
                daemon.start()
                yield SmallEngine(DockerEngine(folder / "docker.sock", daemon), data)
            finally:
                daemon.stop()
        finally:
            # The engine's own end does that too.
            subprocess.run(["umount", str(data)], check=False, capture_output=True)


def _room_for(size: int) -> str | None:
    """An engine waits for the disk again and again: memory is quicker where there is enough."""
    memory = "/dev/shm"
    return memory if Path(memory).is_dir() and shutil.disk_usage(memory).free > 2 * size else None


def run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def copy_image(one: DockerEngine, other: DockerEngine, name: str) -> None:
    """Give ``other`` an image of ``one``'s."""
    content = one.call("GET", f"/images/{name}/get", timeout_s=300).content
    # In pieces: as a whole it would be copied again for each that is sent.
    pieces = (content[start : start + _PIECE] for start in range(0, len(content), _PIECE))
    headers = {"Content-Type": "application/x-tar"}
    other.call("POST", "/images/load", content=pieces, headers=headers, timeout_s=300)
