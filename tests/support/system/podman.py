"""A Podman service of the tests' own, which speaks Docker's language on a socket in a temporary folder.

Its storage, its state and its sockets lie there too, so that whatever else Podman has on this machine is not
touched, and nothing is left of it but the bridge of its containers, which is the kernel's. They are no
children of it: they end when they are removed.
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
_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "TERM")


def missing_programs() -> tuple[str, ...]:
    """Return which programs are not here."""
    return tuple(name for name in _PROGRAMS if shutil.which(name) is None)


@contextlib.contextmanager
def running_podman() -> Iterator[DockerEngine]:
    """Start a service, give what it answers as, and end it with all that it has.

    Raises:
        RuntimeError: it did not come up; the end of its log is in the message.
    """
    with tempfile.TemporaryDirectory(prefix="codetaste-podman-") as name:
        folder = Path(name)
        command = _command(folder)
        with (folder / "log").open("wb") as log:
            service = subprocess.Popen(
                [
                    *_WITH_ITS_PARENT,
                    *command,
                    "system",
                    "service",
                    "--time",
                    "0",
                    f"unix://{folder / 'sock'}",
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            _await(service, folder)
            yield DockerEngine(folder / "sock", None)
        finally:
            service.terminate()
            service.wait(STOP_S)
            subprocess.run(
                [*command, "rm", "--all", "--force", "--time", "0"], check=True, capture_output=True
            )
            _unmount(folder)


def _command(folder: Path) -> Sequence[str]:
    places = {"root": "data", "runroot": "run", "tmpdir": "state", "network-config-dir": "networks"}
    return (
        "podman",
        # There is no systemd where tests run; and with overlay a box is made in no time, as with Docker.
        *("--cgroup-manager", "cgroupfs", "--events-backend", "file", "--storage-driver", "overlay"),
        *(part for option, place in places.items() for part in (f"--{option}", str(folder / place))),
    )


def _await(service: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + START_S
    while service.poll() is None and time.monotonic() < deadline:
        with socket.socket(socket.AF_UNIX) as probe:
            if probe.connect_ex(str(folder / "sock")) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError(f"podman did not start:\n{(folder / 'log').read_text(errors='replace')[-2000:]}")


def _unmount(folder: Path) -> None:
    points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for point in sorted(points, reverse=True):
        if point.startswith(f"{folder}/"):
            subprocess.run(["umount", "--lazy", point], check=True)
