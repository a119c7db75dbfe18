"""A Docker engine for tests: ``dockerd`` with its data and its socket in a temporary folder.

A lock lets only one run on a host at a time, because all engines share the bridge.
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

START_S = 240.0
SOCKET_PATH_BYTES = 108
STOP_S = 30.0
_STREAM_HEADER = 8
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
"""The engine ends with a test session that is killed."""
CONTAINERD = """
version = 2
root = "{data}"
state = "{state}/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "{state}/containerd.sock"
"""


@dataclass(frozen=True, slots=True)
class DockerEngine:
    """A running engine; ``socket`` is that of its API, ``daemon`` its process."""

    socket: Path
    daemon: Daemon

    @property
    def host(self) -> str:
        """The value of DOCKER_HOST for a client program."""
        return f"unix://{self.socket}"

    def call(self, method: str, path: str, *, timeout_s: float = 60, **options: Any) -> httpx.Response:
        """Make one API call.

        Raises:
            httpx.HTTPStatusError: the engine refused it; the message has the response.
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
            response = self.call(
                "POST",
                "/images/create",
                params={"fromSrc": "-", "repo": name, "tag": "latest"},
                content=content,
                headers={"Content-Type": "application/x-tar"},
                timeout_s=300,
            )
        assert '"error"' not in response.text, response.text

    @contextlib.contextmanager
    def container(self, image: str, **settings: Any) -> Iterator[DockerContainer]:
        """Run an idle container for the time of the block; ``settings`` are those of the API."""
        settings = {"Image": image, "Cmd": ["sleep", "3600"], **settings}
        container_id = self.call("POST", "/containers/create", json=settings).json()["Id"]
        try:
            self.call("POST", f"/containers/{container_id}/start")
            yield DockerContainer(self, container_id)
        finally:
            self.call("DELETE", f"/containers/{container_id}", params={"force": "1", "v": "1"})


@dataclass(frozen=True, slots=True)
class DockerContainer:
    """A running container."""

    engine: DockerEngine
    container_id: str

    def put(self, archive: bytes, folder: str) -> None:
        """Unpack a tar archive in a folder of the container, with the owners in the archive."""
        self.engine.call(
            "PUT", f"/containers/{self.container_id}/archive", params={"path": folder}, content=archive
        )

    def run(
        self,
        command: Sequence[str],
        *,
        user: str = "",
        workdir: str = "/",
        env: Mapping[str, str] | None = None,
        timeout_s: float = 600,
    ) -> tuple[int, str]:
        """Run a command; return its exit code and both its streams as one text."""
        variables = [f"{name}={value}" for name, value in (env or {}).items()]
        created = self.engine.call(
            "POST",
            f"/containers/{self.container_id}/exec",
            json={"AttachStdout": True, "AttachStderr": True, "Cmd": list(command)}
            | {"User": user, "WorkingDir": workdir, "Env": variables},
        ).json()
        path = f"/exec/{created['Id']}"
        response = self.engine.call("POST", f"{path}/start", json={"Detach": False}, timeout_s=timeout_s)
        code = self.engine.call("GET", f"{path}/json").json()["ExitCode"]
        return cast("int", code), _join_streams(response.content).decode(errors="replace")


def _join_streams(content: bytes) -> bytes:
    """Join the payloads of an attached stream's frames: type, three zeros, length, payload."""
    output = bytearray()
    while len(content) >= _STREAM_HEADER:
        size = int.from_bytes(content[4:_STREAM_HEADER], "big")
        output += content[_STREAM_HEADER : _STREAM_HEADER + size]
        content = content[_STREAM_HEADER + size :]
    return bytes(output)


def missing_programs() -> tuple[str, ...]:
    """Return the programs that the engine needs and the host lacks."""
    return tuple(
        name for name in ("dockerd", "containerd", "iptables", "setpriv") if shutil.which(name) is None
    )


@contextlib.contextmanager
def running_engine() -> Iterator[DockerEngine]:
    """Run an engine for the time of the block; only the kernel's bridge remains of it.

    Raises:
        RuntimeError: it did not start; the message has the end of its log.
    """
    lock = Path(tempfile.gettempdir()) / "codetaste-dockerd.lock"
    with lock.open("w") as lock_file, tempfile.TemporaryDirectory(prefix="codetaste-docker-") as name:
        fcntl.flock(lock_file, fcntl.LOCK_EX)
        daemon = Daemon(Path(name))
        try:
            daemon.start()
            yield DockerEngine(daemon.folder / "docker.sock", daemon)
        finally:
            daemon.stop()


@dataclass(slots=True)
class Daemon:
    """The processes of an engine, with all its files in ``folder``. ``before`` is a command that starts it.

    We start its containerd: that of dockerd has 15 seconds to respond, which a busy machine may need.
    """

    folder: Path
    options: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    _containerd: subprocess.Popen[bytes] | None = None
    _dockerd: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start or restart it, and wait until it responds.

        Raises:
            RuntimeError: it did not start; the message has the end of its log.
        """
        runtime = self.folder / "exec" / "containerd"
        config = self.folder / "containerd.toml"
        config.write_text(CONTAINERD.format(data=self.folder / "data" / "containerd", state=runtime))
        socket_file = runtime / "containerd.sock"
        socket_file.unlink(missing_ok=True)
        self._containerd = self._start("containerd", f"--config={config}")
        self._wait(self._containerd, socket_file)
        options = {
            "containerd": socket_file,
            "data-root": self.folder / "data",
            "exec-root": self.folder / "exec",
            "pidfile": self.folder / "pid",
            "host": f"unix://{self.folder / 'docker.sock'}",
        }
        words = (f"--{name}={value}" for name, value in options.items())
        self._dockerd = self._start(*self.before, "dockerd", *self.options, *words)
        engine = DockerEngine(self.folder / "docker.sock", self)
        self._wait(self._dockerd, engine.socket)
        engine.call("GET", "/_ping", timeout_s=START_S)

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        longest = self.folder / "exec" / "containerd" / "containerd.sock.ttrpc"
        assert len(os.fsencode(longest)) < SOCKET_PATH_BYTES, f"{longest} is too long for a socket"
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                (*_END_WITH_PARENT, *command),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _wait(self, process: subprocess.Popen[bytes], socket_file: Path) -> None:
        """Wait until the process listens there."""
        deadline = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < deadline:
            with socket.socket(socket.AF_UNIX) as probe:
                if probe.connect_ex(str(socket_file)) == 0:
                    return
            time.sleep(0.1)
        text = (self.folder / "log").read_text(errors="replace")[-2000:]
        raise RuntimeError(f"the Docker engine did not start:\n{text}")

    def kill(self) -> None:
        """Kill it with SIGKILL; its containers continue."""
        for process in (self._dockerd, self._containerd):
            if process is not None:
                process.kill()
                process.wait()

    def stop(self) -> None:
        """Terminate it, and unmount what a killed engine left mounted."""
        for process in (self._dockerd, self._containerd):
            if process is not None:
                _stop(process)
        mount_points = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount_point in sorted(mount_points, reverse=True):
            if mount_point.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "--lazy", mount_point], check=True)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        process.wait()
