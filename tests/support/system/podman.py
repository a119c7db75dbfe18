"""A Podman service for tests, with Docker's API on a socket in a temporary folder.

The folder also has its storage, state and sockets, so Podman's other data on the host are untouched; only the
kernel's bridge remains of it. Containers are not its child processes: they end when they are removed.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from support.system.dockerd import DockerEngine

START_S = 60.0
STOP_S = 30.0
_PROGRAMS = ("podman", "conmon", "setpriv")
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")


def missing_programs() -> tuple[str, ...]:
    """Return the programs that Podman needs and the host lacks."""
    return tuple(name for name in _PROGRAMS if shutil.which(name) is None)


@contextlib.contextmanager
def running_podman() -> Iterator[DockerEngine]:
    """Run a service for the time of the block; then remove it and its containers.

    Raises:
        RuntimeError: it did not start; the message has the end of its log.
    """
    with tempfile.TemporaryDirectory(prefix="codetaste-podman-") as name:
        folder = Path(name)
        command = _command(folder)
        with (folder / "log").open("wb") as log:
            service = subprocess.Popen(
                [
                    *_END_WITH_PARENT,
                    *command,
                    "system",
                    "service",
                    "--time",
                    "0",
                    f"unix://{folder / 'sock'}",
                ],
                cwd=folder,  # its monitor of a container writes a file there when memory runs out
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _wait_for_start(service, folder)
            yield DockerEngine(folder / "sock", None)
        finally:
            service.terminate()
            service.wait(STOP_S)
            subprocess.run(
                [*command, "rm", "--all", "--force", "--time", "0"], check=True, capture_output=True
            )
            _unmount(folder)


def _command(folder: Path) -> Sequence[str]:
    folders = {"root": "data", "runroot": "run", "tmpdir": "state", "network-config-dir": "networks"}
    return (
        "podman",
        # Tests run without systemd; with overlay a container is created quickly, as with Docker.
        *("--cgroup-manager", "cgroupfs", "--events-backend", "file", "--storage-driver", "overlay"),
        *(part for option, subfolder in folders.items() for part in (f"--{option}", str(folder / subfolder))),
    )


def _wait_for_start(service: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while service.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(folder / "sock")) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"podman did not start:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")


def _unmount(folder: Path) -> None:
    mount_points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount_point in sorted(mount_points, reverse=True):
        if mount_point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", mount_point], check=True)
