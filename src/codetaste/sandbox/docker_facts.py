"""What has to be known of an image before boxes are made of it, found out once: a container that never runs.

Whether the engine can bound the size of its containers' files, and whether the image knows the user that
everything in a box belongs to: programs that ask who they are fail where it does not.
"""

from __future__ import annotations

import io
import re
import secrets
import tarfile
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.errors import SandboxError
from codetaste.sandbox.box import GID, HOME, UID, Mount
from codetaste.sandbox.docker_engine import asking, delete
from codetaste.sandbox.docker_labels import labels

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.sandbox.docker_engine import ContainerEngine

_NO_QUOTA = re.compile(r"storage[ -_]?opt|quota", re.IGNORECASE)
_NOT_FOUND = 404
_MOST_BYTES = 1024**2
_LIFETIME_S = 300.0
_ACCOUNTS = {
    "/etc/passwd": (f"agent:x:{UID}:{GID}:agent:{HOME}:/bin/sh\n", "root:x:0:0:root:/root:/bin/sh\n", UID),
    "/etc/group": (f"agent:x:{GID}:\n", "root:x:0:\n", GID),
}
"""What to add where nobody has that number, what there is where there is no such file, and the number."""


async def accounts_of(engine: ContainerEngine, image: str, run: str, folder: Path) -> tuple[Mount, ...]:
    """Return what to mount over an image's lists of users so that they name the user of boxes.

    Notes in ``engine`` whether it has quotas.

    Args:
        engine: which has the image.
        image: its name.
        run: whose label the container gets.
        folder: of this machine, where the lists are put.

    Raises:
        SandboxMissing: the image is not there.
        SandboxError: the engine will not make a container of it.
    """
    name = f"codetaste-{secrets.token_hex(6)}"
    try:
        with anyio.CancelScope(shield=True):
            await _create(engine, name, image, labels(run, "", _LIFETIME_S))
        found = {path: await _content(engine, name, path) for path in _ACCOUNTS}
    finally:
        with anyio.CancelScope(shield=True):
            await delete(engine, f"containers/{name}", v="1", force="1")
    return await to_thread.run_sync(_mounts, found, folder / name)


async def find_quota(engine: ContainerEngine, image: str) -> None:
    """Note in ``engine`` whether it has quotas.

    Raises:
        SandboxError: it will not make a container of ``image``.
    """
    name = f"codetaste-{secrets.token_hex(6)}"
    try:
        with anyio.CancelScope(shield=True):
            await _create(engine, name, image, labels("", "", _LIFETIME_S))
    finally:
        with anyio.CancelScope(shield=True):
            await delete(engine, f"containers/{name}", v="1", force="1")


async def _create(engine: ContainerEngine, name: str, image: str, told: dict[str, str]) -> None:
    """Make a container that is never started, with a quota unless the engine is known to have none."""
    from aiodocker import DockerError  # noqa: PLC0415 - heavy

    config: dict[str, Any] = {
        "Image": image,
        "Entrypoint": ["/bin/sh"],
        "Labels": told,
        "NetworkDisabled": True,
    }
    host = {"NetworkMode": "none"}
    with asking(engine, f"make a box of {image}"):
        if engine.quota is None:
            limited = {**config, "HostConfig": {**host, "StorageOpt": {"size": "1G"}}}
            try:
                await engine.client.containers.create(limited, name=name)
            except DockerError as error:
                if not _NO_QUOTA.search(error.message):
                    raise
                engine.quota = False
            else:
                engine.quota = True
                return
        await engine.client.containers.create({**config, "HostConfig": host}, name=name)


async def _content(engine: ContainerEngine, name: str, path: str) -> str | None:
    """Return the text of a file; "" where there is none, None where it is something else."""
    from aiodocker import DockerError  # noqa: PLC0415 - heavy

    with asking(engine, f"read {path} of an image"):
        try:
            async with engine.stream("GET", f"containers/{name}/archive", params={"path": path}) as answer:
                archive = await answer.content.read(_MOST_BYTES)
                while len(archive) < _MOST_BYTES and (more := await answer.content.read(_MOST_BYTES)):
                    archive += more
        except DockerError as error:
            if error.status == _NOT_FOUND:
                return ""
            raise
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as members:
            member = members.next()
            file = members.extractfile(member) if member is not None and member.isreg() else None
            return None if file is None else file.read().decode(errors="surrogateescape")
    except tarfile.TarError as fault:
        raise SandboxError(f"{path} of an image cannot be read: {fault}") from fault


def _mounts(found: dict[str, str | None], folder: Path) -> tuple[Mount, ...]:
    mounts = []
    for path, text in found.items():
        added, alone, number = _ACCOUNTS[path]
        if text is None or any(line.split(":")[2:3] == [str(number)] for line in text.splitlines()):
            continue
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        file = folder / path.rpartition("/")[2]
        whole = (text or alone).rstrip("\n") + "\n" + added
        file.write_text(whole, encoding="utf-8", errors="surrogateescape")
        file.chmod(0o644)
        mounts.append(Mount(file, path))
    return tuple(mounts)
