"""A Docker engine whose files are on a small disk: a file with a file system, mounted as root."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from support.system.dockerd import Daemon, DockerEngine

_ISOLATED = ("--bridge=none", "--iptables=false")
"""No network. An engine with these options deletes the bridge of the host's other engines, so it needs a
network namespace of its own."""
_CHUNK = 1024**2


@dataclass(frozen=True, slots=True)
class SmallEngine:
    """The engine, and the mount point of its disk."""

    engine: DockerEngine
    disk: Path

    def fill_disk(self, spare: int) -> None:
        """Fill the disk except for ``spare`` bytes."""
        filler_size = shutil.disk_usage(self.disk).free - spare
        subprocess.run(["fallocate", "-l", str(filler_size), str(self.disk / "ballast")], check=True)

    def free_disk(self) -> None:
        """Remove what ``fill_disk`` wrote."""
        (self.disk / "ballast").unlink()


@contextlib.contextmanager
def small_engine(driver: str, size: int, *commands: Sequence[str]) -> Iterator[SmallEngine]:
    """Start an engine with storage driver ``driver`` on a disk of ``size`` bytes.

    ``commands`` prepare the disk, the first before it is mounted. The disk or its mount point
    is added as their last argument.
    """
    with (
        tempfile.TemporaryDirectory(prefix="codetaste-small-") as name,
        tempfile.NamedTemporaryFile(prefix="codetaste-small-", dir=_choose_folder(size)) as file,
    ):
        folder, disk = Path(name), file.name
        data = folder / "data"
        data.mkdir()
        file.truncate(size)
        mkfs, *after_mount = commands
        run([*mkfs, disk])
        run(["mount", "-o", "loop", disk, str(data)])
        try:
            for command in after_mount:
                run([*command, str(data)])
            options = (*_ISOLATED, f"--storage-driver={driver}")
            daemon = Daemon(folder, options, before=("unshare", "--net"))
            try:
                daemon.start()
                yield SmallEngine(DockerEngine(folder / "docker.sock", daemon), data)
            finally:
                daemon.stop()
        finally:
            # Usually the engine has unmounted it.
            subprocess.run(["umount", str(data)], check=False, capture_output=True)


def _choose_folder(size: int) -> str | None:
    """Return a folder in memory if there is enough: an engine syncs its disk often."""
    memory = "/dev/shm"
    return memory if Path(memory).is_dir() and shutil.disk_usage(memory).free > 2 * size else None


def run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True, capture_output=True)


def copy_image(source: DockerEngine, target: DockerEngine, name: str) -> None:
    """Copy an image from ``source`` to ``target``."""
    content = source.call("GET", f"/images/{name}/get", timeout_s=300).content
    # In chunks: a single body would be copied again at each send.
    chunks = (content[start : start + _CHUNK] for start in range(0, len(content), _CHUNK))
    headers = {"Content-Type": "application/x-tar"}
    target.call("POST", "/images/load", content=chunks, headers=headers, timeout_s=300)
