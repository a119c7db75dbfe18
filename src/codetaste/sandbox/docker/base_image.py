"""The image that sandboxes are created from: the configured one, plus what every sandbox must have.

What an image lacks is added once for a run, in a container that never runs: the four writable folders, and
the user of the sandbox, because programs that look up their own user fail without an entry for it.
"""

from __future__ import annotations

import io
import re
import secrets
import tarfile
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio
from aiodocker import DockerError

from codetaste.errors import SandboxError
from codetaste.sandbox.base import GID, HOME, UID
from codetaste.sandbox.docker.archive import ArchiveUpload
from codetaste.sandbox.docker.engine import delete_resource, engine_errors
from codetaste.sandbox.docker.spec import IMAGE_LABEL, LEAN_KIND, WRITABLE_FOLDERS, make_labels

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from codetaste.sandbox.docker.engine import ContainerEngine

_NO_QUOTA = re.compile(r"storage[ -_]?opt|quota", re.IGNORECASE)
_NOT_FOUND = 404
_HEADER, _MAX_FILE_BYTES = 512, 1024**2
_TRIAL_BYTES = 1024**3
_LIFETIME_S = 7 * 24 * 3600.0
_ACCOUNTS = {
    "/etc/passwd": (f"agent:x:{UID}:{GID}:agent:{HOME}:/bin/sh\n", "root:x:0:0:root:/root:/bin/sh\n", UID),
    "/etc/group": (f"agent:x:{GID}:\n", "root:x:0:\n", GID),
}
"""Per file: the entry to add if the id has none, the content of a missing file, and the id."""


async def derive_base_image(engine: ContainerEngine, image: str, run: str) -> str:
    """Return the image of sandboxes: ``image`` itself, or one derived from it, which the caller deletes.

    Args:
        engine: which has the image.
        image: its name.
        run: name of the run, for the label of the derived image.

    Raises:
        SandboxMissing: the image does not exist.
        SandboxError: the engine cannot create a container from it.
    """
    with engine_errors(engine, f"create sandboxes from {image}"):
        found = await engine.client.images.inspect(image)
        if (found["Config"].get("Labels") or {}).get(IMAGE_LABEL) == LEAN_KIND:
            return image
    async with _unstarted_container(engine, image, run) as name:
        missing: dict[str, str | None] = {}
        for path, (added, default, number) in _ACCOUNTS.items():
            text = await _file_text(engine, name, path)
            if not any(line.split(":")[2:3] == [str(number)] for line in text.splitlines()):
                missing[path] = (text or default).rstrip("\n") + "\n" + added
        for folder in WRITABLE_FOLDERS:
            head = await _archive_prefix(engine, name, folder, _HEADER)
            member = tarfile.TarInfo.frombuf(head, tarfile.ENCODING, "surrogateescape") if head else None
            if member is None or not member.isdir() or (member.uid, member.gid) != (UID, GID):
                missing[folder] = None
        if not missing:
            return image
        with (
            engine_errors(engine, f"add the user and folders of a sandbox to {image}"),
            anyio.CancelScope(shield=True),
        ):
            container = engine.client.containers.container(name)
            await container.put_archive("/", ArchiveUpload(_tar_of(missing)))  # type: ignore[no-untyped-call]
            derived = await container.commit(
                pause=False, config={}
            )  # Podman refuses a request without a body
        return str(derived["Id"])


async def detect_quota(engine: ContainerEngine, image: str) -> None:
    """Record in ``engine.quota`` whether the engine can limit the disk usage of a container.

    Raises:
        SandboxError: it cannot create a container from ``image``.
    """
    async with _unstarted_container(engine, image, ""):
        pass


@asynccontextmanager
async def _unstarted_container(engine: ContainerEngine, image: str, run: str) -> AsyncIterator[str]:
    """Create a container that is never started, for the time of the block."""
    name = f"codetaste-{secrets.token_hex(6)}"
    try:
        with anyio.CancelScope(shield=True), engine_errors(engine, f"create a sandbox from {image}"):
            config = {"Image": image, "Entrypoint": ["/bin/sh"], "Labels": make_labels(run, "", _LIFETIME_S)}
            await create_container(
                engine, name, {**config, "HostConfig": {"NetworkMode": "none"}}, _TRIAL_BYTES
            )
        yield name
    finally:
        with anyio.CancelScope(shield=True):
            await delete_resource(engine, f"containers/{name}", v="1", force="1")


async def create_container(
    engine: ContainerEngine, name: str, config: dict[str, Any], disk_bytes: int
) -> str:
    """Create a container and return its id, with a disk quota of ``disk_bytes`` if the engine has quotas.

    Records in ``engine.quota`` whether it has. Use it within ``engine_errors``.

    Raises:
        DockerError: the engine refused.
    """
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


async def _file_text(engine: ContainerEngine, name: str, path: str) -> str:
    archive = await _archive_prefix(engine, name, path, _MAX_FILE_BYTES)
    if not archive:
        return ""
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        member = members.next()
        file = members.extractfile(member) if member is not None and member.isreg() else None
        if file is None:
            raise SandboxError(
                f"{path} of the image is not a regular file: sandboxes cannot be created from it"
            )
        return file.read().decode(errors="surrogateescape")


async def _archive_prefix(engine: ContainerEngine, name: str, path: str, size: int) -> bytes:
    with engine_errors(engine, f"read {path} of an image"):
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


def _tar_of(missing: dict[str, str | None]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path, text in missing.items():
            member = tarfile.TarInfo(path.lstrip("/"))
            if text is None:
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                member.uid, member.gid = UID, GID
                archive.addfile(member)
            else:
                content = text.encode(errors="surrogateescape")
                member.size, member.mode = len(content), 0o644
                archive.addfile(member, io.BytesIO(content))
    return buffer.getvalue()
