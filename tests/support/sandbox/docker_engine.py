"""Support for tests of sandboxes in containers: an engine's objects and the requests that it gets."""

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
from support.sandbox.providers import open_docker
from support.system.dockerd import DockerEngine


@pytest.fixture
async def docker_provider(
    docker_engine: DockerEngine, lean_image: str, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[DockerSandboxProvider]:
    """Opens sandboxes in the tests' Docker engine, and checks that they leave nothing in it."""
    before = count_objects(docker_engine)
    async with open_docker(docker_engine.socket, lean_image, tmp_path / "sandboxes") as provider:
        yield provider
    assert count_objects(docker_engine) == before


def count_objects(engine: DockerEngine) -> dict[str, int]:
    """Count the containers, networks, volumes and images."""
    return {
        "containers": len(engine.call("GET", "/containers/json", params={"all": "1"}).json()),
        "networks": len(engine.call("GET", "/networks").json()),
        "volumes": len(engine.call("GET", "/volumes").json()["Volumes"] or []),
        "images": len(engine.call("GET", "/images/json", params={"all": "1"}).json()),
    }


def container_labels(engine: DockerEngine, run: str) -> list[dict[str, str]]:
    """Return the labels of a run's containers."""
    filters = json.dumps({"label": [f"codetaste.run={run}"]})
    found = engine.call("GET", "/containers/json", params={"all": "1", "filters": filters}).json()
    return [container["Labels"] for container in found]


def inspect_container(engine: DockerEngine, run: str) -> dict[str, object]:
    """Return the engine's description of a run's only container."""
    filters = json.dumps({"label": [f"codetaste.run={run}"]})
    (found,) = engine.call("GET", "/containers/json", params={"all": "1", "filters": filters}).json()
    document: dict[str, object] = engine.call("GET", f"/containers/{found['Id']}/json").json()
    return document


@contextmanager
def record_requests(engine: Path, path: Path) -> Iterator[list[str]]:
    """Forward a socket at ``path`` to ``engine``; give the method and path of each request."""
    requests: list[str] = []

    class ForwardingHandler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with socket.socket(socket.AF_UNIX) as upstream:
                upstream.connect(str(engine))
                reply_thread = threading.Thread(target=copy_stream, args=(upstream, self.request, None))
                reply_thread.start()
                copy_stream(self.request, upstream, requests)
                reply_thread.join()

    class Server(socketserver.ThreadingUnixStreamServer):
        daemon_threads = True

    with Server(str(path), ForwardingHandler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield requests
        finally:
            server.shutdown()
            thread.join()


METHODS = (b"GET ", b"POST ", b"PUT ", b"DELETE ", b"HEAD ")


def copy_stream(source: socket.socket, target: socket.socket, requests: list[str] | None) -> None:
    try:
        while chunk := source.recv(65536):
            if requests is not None and chunk.startswith(METHODS):
                requests.append(chunk.split(b" HTTP/", 1)[0].decode())
            target.sendall(chunk)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one end is closed
