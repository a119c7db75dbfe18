"""Every kind of box that this machine has, for tests of what all of them promise."""

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
async def in_bubblewrap(folder: Path) -> AsyncIterator[SandboxProvider]:
    yield bubblewrap_provider(folder)


@asynccontextmanager
async def in_docker(
    socket: Path, image: str, folder: Path, run: str = "test", kind: str = DOCKER
) -> AsyncIterator[DockerSandboxProvider]:
    """Boxes in the tests' engine; nothing of them may be left behind unremoved."""
    left: list[str] = []
    async with (
        connect_engine(kind, socket) as engine,
        open_docker_sandboxes(
            engine, run=run, image=image, folder=folder, bundle=None, warn=left.append
        ) as opened,
    ):
        yield opened
    assert left == [], left


@pytest.fixture(
    params=[
        "bubblewrap",
        pytest.param(DOCKER, marks=pytest.mark.system),
        pytest.param(PODMAN, marks=[pytest.mark.system, pytest.mark.slow]),
    ]
)
def opening(request: pytest.FixtureRequest, tmp_path: Path) -> AbstractAsyncContextManager[SandboxProvider]:
    """What opens boxes of every kind, before it is opened itself."""
    if request.param == "bubblewrap":
        return in_bubblewrap(tmp_path / "boxes")
    engine = request.getfixturevalue(f"{request.param}_engine")
    image = request.getfixturevalue({DOCKER: "lean_image", PODMAN: "podman_image"}[request.param])
    return in_docker(engine.socket, image, tmp_path / "boxes", kind=request.param)


@pytest.fixture
async def boxes(
    opening: AbstractAsyncContextManager[SandboxProvider], anyio_backend: str
) -> AsyncIterator[SandboxProvider]:
    """What opens boxes, once for every kind."""
    async with opening as opened:
        yield opened


@pytest.fixture
async def box(boxes: SandboxProvider) -> AsyncIterator[Sandbox]:
    """An open box of every kind, empty."""
    async with boxes.open(SandboxSpec("test")) as opened:
        yield opened


@pytest.fixture
def token() -> str:
    """A number to sleep for, that no other process sleeps for."""
    return f"9{uuid.uuid4().int % 10**9:09d}"


async def sh(box: Sandbox, script: str, *, wall_s: float = 60.0, stdin: bytes = b"") -> CommandResult:
    """Run a shell script inside."""
    return await box.run(["sh", "-c", script], limits=CommandLimits(wall_s=wall_s), stdin=stdin)


async def inside(box: Sandbox) -> list[str]:
    """The processes inside but for the box's own two, the first and its child, and the one that looks."""
    # By the shell alone: what it would start would be seen too.
    script = 'for one in /proc/[0-9]*; do read -r line <$one/stat && echo "$line"; done 2>/dev/null'
    own = re.compile(r"1 |\d+ \((?:node|codetaste)\) . 1 |\d+ \(sh\) R")
    found = [""]
    with anyio.move_on_after(60):
        while found:  # the dead are collected a moment later
            lines = (await sh(box, script)).stdout.decode(errors="replace").splitlines()
            found = [line for line in lines if not own.match(line)]
            if not all(re.match(r"\d+ \(.*\) Z", line) for line in found):
                break
    return found


def archive(*members: tuple[str, bytes | str | None], mode: int = 0o644) -> bytes:
    """A tar archive as ours are: of files (bytes), links (text: to where) and folders (None)."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT, errors="surrogateescape") as tar:
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
    return made.getvalue()


async def fetched(box: Sandbox, path: str) -> dict[str, tuple[tarfile.TarInfo, bytes]]:
    """What ``path`` inside has: each member with its content."""
    async with box.get(path) as chunks:
        data = b"".join([chunk async for chunk in chunks])
    with tarfile.open(fileobj=io.BytesIO(data), errors="surrogateescape") as tar:
        members = tar.getmembers()
        files = {one.name: tar.extractfile(one) if one.isreg() else None for one in members}
        return {
            one.name: (one, file.read() if (file := files[one.name]) is not None else b"") for one in members
        }


def descendants(pid: int | None = None) -> set[int]:
    """All living processes that descend from ``pid``, by default from this one."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if fields[0] not in "ZX":
                parents[int(folder.name)] = int(fields[1])
    found, grown = {pid or os.getpid()}, True
    while grown:
        more = {one for one, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found - {pid or os.getpid()}
