"""What tests of boxes in containers have in common: an engine counted, asked about, and listened to."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from codetaste.sandbox.docker.provider import DockerSandboxProvider
from support.sandbox.providers import in_docker
from support.system.dockerd import DockerEngine


@pytest.fixture
async def containers(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[DockerSandboxProvider]:
    """What opens boxes in the tests' engine; at the end nothing of them may be left in it."""
    before = census(docker_engine)
    async with in_docker(docker_engine.socket, lean_image, tmp_path / "boxes") as opened:
        yield opened
    assert census(docker_engine) == before


def census(engine: DockerEngine) -> dict[str, int]:
    """How many containers, networks, volumes and images there are."""
    return {
        "containers": len(engine.call("GET", "/containers/json", params={"all": "1"}).json()),
        "networks": len(engine.call("GET", "/networks").json()),
        "volumes": len(engine.call("GET", "/volumes").json()["Volumes"] or []),
        "images": len(engine.call("GET", "/images/json", params={"all": "1"}).json()),
    }


def ours(engine: DockerEngine, run: str) -> list[dict[str, str]]:
    """The labels of a run's containers."""
    filters = json.dumps({"label": [f"codetaste.run={run}"]})
    found = engine.call("GET", "/containers/json", params={"all": "1", "filters": filters}).json()
    return [one["Labels"] for one in found]


def config_of(engine: DockerEngine, run: str) -> dict[str, object]:
    """What the engine says of the only container of a run."""
    filters = json.dumps({"label": [f"codetaste.run={run}"]})
    (found,) = engine.call("GET", "/containers/json", params={"all": "1", "filters": filters}).json()
    told: dict[str, object] = engine.call("GET", f"/containers/{found['Id']}/json").json()
    return told


@contextmanager
def counting(engine: Path, place: Path) -> Iterator[list[str]]:
    """A socket at ``place`` that leads to ``engine``; gives the first lines of the requests that pass."""
    seen: list[str] = []

    class Passing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as far:
                far.connect(str(engine))
                back = threading.Thread(target=pump, args=(far, self.request, None))
                back.start()
                pump(self.request, far, seen)
                back.join()

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(place), Passing) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield seen
        finally:
            server.shutdown()
            thread.join()


VERBS = (b"GET ", b"POST ", b"PUT ", b"DELETE ", b"HEAD ")


def pump(near: socket.socket, far: socket.socket, seen: list[str] | None) -> None:
    try:
        while piece := near.recv(65536):
            if seen is not None and piece.startswith(VERBS):
                seen.append(piece.split(b" HTTP/", 1)[0].decode())
            far.sendall(piece)
        far.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of them has gone
