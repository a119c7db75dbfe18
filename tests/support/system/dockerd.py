"""A Docker engine of the tests' own: ``dockerd`` with its data and its socket in a temporary folder.

One at a time on a machine, because all engines share the bridge: whoever comes second waits for the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx

START_S = 60.0
STOP_S = 30.0
_STREAM_HEADER = 8
_WITH_ITS_PARENT = ("setpriv", "--pdeathsig", "TERM")
"""A test session that is killed takes its engine with it."""


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """A reachable engine; ``socket`` is where its API listens, ``daemon`` what serves it."""

    socket: Path
    daemon: Daemon

    @property
    def host(self) -> str:
        """The value of DOCKER_HOST for a client program."""
        return f"unix://{self.socket}"

    def call(self, method: str, path: str, *, timeout_s: float = 60, **options: Any) -> httpx.Response:
        """Make one API call.

        Raises:
            httpx.HTTPStatusError: the engine refused; its reason is in the response.
        """
        transport = httpx.HTTPTransport(uds=str(self.socket))
        with httpx.Client(transport=transport, base_url="http://docker", timeout=timeout_s) as client:
            response = client.request(method, path, **options)
        if response.is_error:
            message = f"{method} {path}: {response.status_code} {response.text}"
            raise httpx.HTTPStatusError(message, request=response.request, response=response)
        return response

    def import_image(self, archive: Path, name: str) -> None:
        """Make a one-layer image from the tar archive of a root file system."""
        with archive.open("rb") as content:
            answer = self.call(
                "POST",
                "/images/create",
                params={"fromSrc": "-", "repo": name, "tag": "latest"},
                content=content,
                headers={"Content-Type": "application/x-tar"},
                timeout_s=300,
            )
        assert '"error"' not in answer.text, answer.text

    @contextlib.contextmanager
    def container(self, image: str, **settings: Any) -> Iterator[DockerContainer]:
        """Start a container that idles until the end of the block; ``settings`` are those of the API."""
        settings = {"Image": image, "Cmd": ["sleep", "3600"], **settings}
        ident = self.call("POST", "/containers/create", json=settings).json()["Id"]
        try:
            self.call("POST", f"/containers/{ident}/start")
            yield DockerContainer(self, ident)
        finally:
            self.call("DELETE", f"/containers/{ident}", params={"force": "1", "v": "1"})


@dataclass(frozen=True, slots=True)
class DockerContainer:
    """A running container."""

    engine: DockerEngine
    ident: str

    def put(self, archive: bytes, folder: str) -> None:
        """Unpack a tar archive in an existing folder of the container, owners as recorded in it."""
        self.engine.call("PUT", f"/containers/{self.ident}/archive", params={"path": folder}, content=archive)

    def run(
        self,
        command: Sequence[str],
        *,
        user: str = "",
        workdir: str = "/",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 600,
    ) -> tuple[int, str]:
        """Run a command to its end; return its exit code and both its streams in one text."""
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        created = self.engine.call(
            "POST",
            f"/containers/{self.ident}/exec",
            json={"AttachStdout": True, "AttachStderr": True, "Cmd": list(command)}
            | {"User": user, "WorkingDir": workdir, "Env": variables},
        ).json()
        path = f"/exec/{created['Id']}"
        answer = self.engine.call("POST", f"{path}/start", json={"Detach": False}, timeout_s=timeout_s)
        code = self.engine.call("GET", f"{path}/json").json()["ExitCode"]
        return cast("int", code), _both_streams(answer.content).decode(errors="replace")


def _both_streams(content: bytes) -> bytes:
    """Take the frames of an attached terminal-less stream apart: type, three zeros, length, payload."""
    out = bytearray()
    while len(content) >= _STREAM_HEADER:
        size = int.from_bytes(content[4:_STREAM_HEADER], "big")
        out += content[_STREAM_HEADER : _STREAM_HEADER + size]
        content = content[_STREAM_HEADER + size :]
    return bytes(out)


def missing_programs() -> tuple[str, ...]:
    """Return which programs an engine of our own lacks here."""
    return tuple(
        name for name in ("dockerd", "containerd", "iptables", "setpriv") if shutil.which(name) is None
    )


@contextlib.contextmanager
def running_engine() -> Iterator[DockerEngine]:
    """Start an engine, give it, and stop it again; only the kernel's bridge is left of it.

    Raises:
        RuntimeError: it did not come up; the end of its log is in the message.
    """
    lock = Path(tempfile.gettempdir()) / "codetaste-dockerd.lock"
    with lock.open("w") as held, tempfile.TemporaryDirectory(prefix="codetaste-docker-") as name:
        fcntl.flock(held, fcntl.LOCK_EX)
        daemon = Daemon(Path(name))
        try:
            daemon.start()
            yield DockerEngine(daemon.folder / "docker.sock", daemon)
        finally:
            daemon.stop()


@dataclass(slots=True)
class Daemon:
    """The program behind an engine, with all that is its own in ``folder``."""

    folder: Path
    options: tuple[str, ...] = ()
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, or start it again, and wait until it answers.

        Raises:
            RuntimeError: it did not come up; the end of its log is in the message.
        """
        log = self.folder / "log"
        places = {
            "data-root": self.folder / "data",
            "exec-root": self.folder / "exec",
            "pidfile": self.folder / "pid",
            "host": f"unix://{self.folder / 'docker.sock'}",
        }
        with log.open("ab") as words:
            process = subprocess.Popen(
                [
                    *(*_WITH_ITS_PARENT, "dockerd", *self.options),
                    *(f"--{name}={value}" for name, value in places.items()),
                ],
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._process = process
        engine = DockerEngine(self.folder / "docker.sock", self)
        deadline = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as probe:
                listens = probe.connect_ex(str(engine.socket)) == 0
            if listens:
                engine.call("GET", "/_ping", timeout_s=START_S)
                return
            time.sleep(0.1)
        raise RuntimeError(f"dockerd did not start:\n{log.read_text(errors='replace')[-2000:]}")

    def kill(self) -> None:
        """Kill it as the kernel would; what it contains runs on."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            # Its containerd dies with it; where nobody collects the dead the next one would wait for it.
            (self.folder / "exec" / "containerd" / "containerd.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it in good order; one that was killed in between has left mounts behind."""
        if self._process is not None:
            _stop(self._process)
        points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for point in sorted(points, reverse=True):
            if point.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", point], check=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
