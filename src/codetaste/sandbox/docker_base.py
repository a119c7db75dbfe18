"""The image that boxes are really made of: the one that is named, with what every box must have.

What an image lacks is found out and added once for a run, in a container that never runs: the four places,
and the user that all in a box belongs to, for programs that ask who they are fail where nobody knows.
"""

from __future__ import annotations

import io
import re
import secrets
import tarfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.box import GID, HOME, UID
from codetaste.sandbox.docker_archive import Sent
from codetaste.sandbox.docker_engine import asking, delete
from codetaste.sandbox.docker_labels import IMAGE, LEAN, labels
from codetaste.sandbox.docker_spec import PLACES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.sandbox.docker_engine import ContainerEngine

_NO_QUOTA = re.compile(r"storage[ -_]?opt|quota", re.IGNORECASE)
_NOT_FOUND = 404
_HEADER, _MOST_BYTES = 512, 1024**2
_TRIAL_BYTES = 1024**3
_LIFETIME_S = 7 * 24 * 3600.0
_ACCOUNTS = {
    "/etc/passwd": (f"agent:x:{UID}:{GID}:agent:{HOME}:/bin/sh\n", "root:x:0:0:root:/root:/bin/sh\n", UID),
    "/etc/group": (f"agent:x:{GID}:\n", "root:x:0:\n", GID),
}
"""What to add where nobody has that number, what there is where there is no such file, and the number."""


async def base_of(engine: ContainerEngine, image: str, run: str) -> str:
    """Return the image to make boxes of: ``image`` itself, or one made of it, which the caller deletes.

    Args:
        engine: which has the image.
        image: its name.
        run: whose label the new one gets.

    Raises:
        SandboxMissing: the image is not there.
        SandboxError: the engine will not make a container of it.
    """
    with asking(engine, f"make boxes of {image}"):
        found = await engine.call("GET", f"images/{image}/json")
        if (found["Config"].get("Labels") or {}).get(IMAGE) == LEAN:
            return image
    async with _trial(engine, image, run) as name:
        lacking: dict[str, str | None] = {}
        for path, (added, alone, number) in _ACCOUNTS.items():
            text = await _text(engine, name, path)
            if not any(line.split(":")[2:3] == [str(number)] for line in text.splitlines()):
                lacking[path] = (text or alone).rstrip("\n") + "\n" + added
        for place in PLACES:
            member = await _member(engine, name, place)
            if member is None or not member.isdir() or (member.uid, member.gid) != (UID, GID):
                lacking[place] = None
        if not lacking:
            return image
        made = {}
        with asking(engine, f"add what boxes need to {image}"), anyio.CancelScope(shield=True):
            path = f"containers/{name}/archive"
            async with engine.stream(
                "PUT", path, params={"path": "/"}, data=Sent(_archive(lacking))
            ) as answer:
                await answer.read()
            made = await engine.call("POST", "commit", {"container": name, "pause": "0"}, {})
        return str(made["Id"])


async def find_quota(engine: ContainerEngine, image: str) -> None:
    """Note in ``engine`` whether it has quotas.

    Raises:
        SandboxError: it will not make a container of ``image``.
    """
    async with _trial(engine, image, ""):
        pass


@asynccontextmanager
async def _trial(engine: ContainerEngine, image: str, run: str) -> AsyncIterator[str]:
    """Make a container that is never started, for the time of the block."""
    name = f"codetaste-{secrets.token_hex(6)}"
    try:
        with anyio.CancelScope(shield=True), asking(engine, f"make a box of {image}"):
            config = {"Image": image, "Entrypoint": ["/bin/sh"], "Labels": labels(run, "", _LIFETIME_S)}
            await create(engine, name, {**config, "HostConfig": {"NetworkMode": "none"}}, _TRIAL_BYTES)
        yield name
    finally:
        with anyio.CancelScope(shield=True):
            await delete(engine, f"containers/{name}", v="1", force="1")


async def create(engine: ContainerEngine, name: str, config: dict[str, Any], disk_bytes: int) -> str:
    """Make a container and return its id; the engine itself bounds its files to ``disk_bytes``, if it can.

    Notes in ``engine`` whether it can. Use it within ``asking``.

    Raises:
        DockerError: the engine refused.
    """
    from aiodocker import DockerError  # noqa: PLC0415 - heavy

    if engine.quota is not False:
        host = {**config["HostConfig"], "StorageOpt": {"size": str(disk_bytes)}}
        try:
            container = await engine.client.containers.create({**config, "HostConfig": host}, name=name)
        except DockerError as error:
            if not _NO_QUOTA.search(error.message):
                raise
            engine.quota = False
        else:
            engine.quota = True
            return container.id
    return (await engine.client.containers.create(config, name=name)).id


async def _member(engine: ContainerEngine, name: str, path: str) -> tarfile.TarInfo | None:
    """Return what ``path`` is, None where it is not there; of what is in it nothing is read."""
    head = await _beginning(engine, name, path, _HEADER)
    return tarfile.TarInfo.frombuf(head, tarfile.ENCODING, "surrogateescape") if head else None


async def _text(engine: ContainerEngine, name: str, path: str) -> str:
    """Return what a file has, "" where it is not there."""
    archive = await _beginning(engine, name, path, _MOST_BYTES)
    if not archive:
        return ""
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        member = members.next()
        file = members.extractfile(member) if member is not None and member.isreg() else None
        if file is None:
            raise SandboxError(f"{path} of the image is no file: boxes cannot be made of it")
        return file.read().decode(errors="surrogateescape")


async def _beginning(engine: ContainerEngine, name: str, path: str, size: int) -> bytes:
    from aiodocker import DockerError  # noqa: PLC0415 - heavy

    with asking(engine, f"read {path} of an image"):
        try:
            async with engine.stream("GET", f"containers/{name}/archive", params={"path": path}) as answer:
                content = b""
                while len(content) < size and (more := await answer.content.read(size - len(content))):
                    content += more
                return content
        except DockerError as error:
            if error.status == _NOT_FOUND:
                return b""
            raise


def _archive(lacking: dict[str, str | None]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, text in lacking.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            if text is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                member.uid, member.gid = UID, GID
                archive.addfile(member)
            else:
                content = text.encode(errors="surrogateescape")
                member.size, member.mode = len(content), 0o644
                archive.addfile(member, io.BytesIO(content))
    return made.getvalue()
