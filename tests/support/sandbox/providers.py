"""Sandboxes of every provider, for tests of the guarantees that all providers give."""

from __future__ import annotations

import io
import os
import re
import tarfile
import uuid
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from codetaste.sandbox.base import CommandLimits, CommandResult, Sandbox, SandboxProvider, SandboxSpec
from codetaste.sandbox.docker.engine import DOCKER, PODMAN, connect_engine
from codetaste.sandbox.docker.provider import DockerSandboxProvider, open_docker_sandboxes
from codetaste.sandbox.local.sandbox import bubblewrap_provider


@asynccontextmanager
async def open_bubblewrap(folder: Path) -> AsyncIterator[SandboxProvider]:
    yield bubblewrap_provider(folder)


@asynccontextmanager
async def open_docker(
    socket: Path, image: str, folder: Path, run: str = "test", kind: str = DOCKER
) -> AsyncIterator[DockerSandboxProvider]:
    """Open sandboxes in the tests' engine, and check that all of them are removed."""
    warnings: list[str] = []
    async with (
        connect_engine(kind, socket) as engine,
        open_docker_sandboxes(
            engine, run=run, image=image, folder=folder, bundle=None, warn=warnings.append
        ) as opened,
    ):
        yield opened
    assert warnings == [], warnings


CONTAINERS = (
    pytest.param(DOCKER, marks=pytest.mark.system),
    pytest.param(PODMAN, marks=[pytest.mark.system, pytest.mark.slow]),
)
in_containers = pytest.mark.parametrize("provider_context", CONTAINERS, indirect=True)
"""For tests of what only container engines can do."""


@pytest.fixture(params=["bubblewrap", *CONTAINERS])
def provider_context(
    request: pytest.FixtureRequest, tmp_path: Path
) -> AbstractAsyncContextManager[SandboxProvider]:
    """Each sandbox provider, not yet entered."""
    if request.param == "bubblewrap":
        return open_bubblewrap(tmp_path / "sandboxes")
    engine = request.getfixturevalue(f"{request.param}_engine")
    image = request.getfixturevalue({DOCKER: "lean_image", PODMAN: "podman_image"}[request.param])
    return open_docker(engine.socket, image, tmp_path / "sandboxes", kind=request.param)


@pytest.fixture
async def provider(
    provider_context: AbstractAsyncContextManager[SandboxProvider], anyio_backend: str
) -> AsyncIterator[SandboxProvider]:
    """Each sandbox provider."""
    async with provider_context as opened:
        yield opened


@pytest.fixture
async def sandbox(provider: SandboxProvider) -> AsyncIterator[Sandbox]:
    """An open, empty sandbox of each provider."""
    async with provider.open(SandboxSpec("test")) as opened:
        yield opened


@pytest.fixture
def token() -> str:
    """A number of seconds to sleep that is unique to the test, to find its processes by."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


async def sh(
    sandbox: Sandbox, script: str, *, wall_s: float = 60.0, stdin: bytes = b"", root: bool = False
) -> CommandResult:
    """Run a shell script in the sandbox."""
    limits = CommandLimits(wall_s=wall_s)
    return await sandbox.run(["sh", "-c", script], limits=limits, stdin=stdin, root=root)


async def running_processes(sandbox: Sandbox) -> list[str]:
    """Return the processes in a sandbox, except its first process, the supervisor, and this script."""
    # Shell built-ins only: a program would be in the list.
    script = 'for one in /proc/[0-9]*; do read -r line <$one/stat && echo "$line"; done 2>/dev/null'
    own = re.compile(r"1 |\d+ \((?:node|codetaste)\) . 1 |\d+ \(sh\) R")
    found = [""]
    with anyio.move_on_after(60):
        while found:  # zombies are reaped a moment later
            lines = (await sh(sandbox, script)).stdout.decode(errors="replace").splitlines()
            found = [line for line in lines if not own.match(line)]
            if not all(re.match(r"\d+ \(.*\) Z", line) for line in found):
                break
    return found


def make_archive(*members: tuple[str, bytes | str | None], mode: int = 0o644) -> bytes:
    """Return a tar archive of files (bytes), symbolic links (text: the target) and folders (None)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.uid = member.gid = 1000
            member.mode, member.mtime = mode, 1_600_000_000
            if content is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
            elif isinstance(content, str):
                member.type, member.linkname = tarfile.SYMTYPE, content
            else:
                member.size = len(content)
            tar.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return buffer.getvalue()


async def get_members(sandbox: Sandbox, path: str) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """Return the members of ``path`` in the sandbox by name, each with its content."""
    async with sandbox.get(path) as chunks:
        data = b"".join([chunk async for chunk in chunks])
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
        members = tar.getmembers()
        files = {one.name: tar.extractfile(one) if one.isreg() else None for one in members}
        return {
            one.name: (one, file.read() if (file := files[one.name]) is not None else b"") for one in members
        }


def find_descendants(pid: int | None = None) -> set[int]:
    """Return the live processes that descend from ``pid``, by default from this process."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(folder.name)] = int(fields[1])
    found, growing = {pid or os.getpid()}, True
    while growing:
        more = {one for one, parent in parents.items() if parent in found} - found
        found |= more
        growing = bool(more)
    return found - {pid or os.getpid()}
