"""Images in a container engine: import, build, find, tag, list and remove."""

from __future__ import annotations

import json
import re
import tarfile
import tempfile
from dataclasses import dataclass
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from aiodocker import DockerError
from anyio import to_thread

from codetaste.errors import ConfigError, SandboxError
from codetaste.sandbox.docker.archive import read_chunks
from codetaste.sandbox.docker.engine import PODMAN, engine_errors
from codetaste.sandbox.docker.spec import IMAGE_LABEL, OWNER_LABEL

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping, Sequence
    from pathlib import Path

    from aiohttp import ClientResponse

    from codetaste.sandbox.docker.engine import ContainerEngine

_BUILD_S = 2 * 3600.0
_COMMIT_S = 600.0
_IN_USE_OR_GONE = {404, 409}
_IN_MEMORY = 8 * 1024**2
_NAME = re.compile(
    r"(?P<repository>(?:[A-Za-z0-9.-]+:[0-9]{1,5}/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?"
)
"""A name may begin with the host and port of a registry."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image that codetaste made; ``kind`` is the value of its label, the size is in bytes."""

    name: str
    ident: str
    kind: str
    size_bytes: int
    created: int


async def import_image(
    engine: ContainerEngine,
    archive: AsyncIterable[bytes],
    name: str,
    what: str,
    *,
    env: Mapping[str, str],
    labels: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Import the tar archive of a root file system as an image of one layer, and return its id.

    Raises:
        ConfigError: ``name`` is not a valid image name.
        SandboxError: the engine refused it.
    """
    split_image_name(name)
    changes = [*_env_changes(env), *_label_changes({**labels, IMAGE_LABEL: what})]
    # Repository and tag together: Podman ignores a separate tag.
    params = [("fromSrc", "-"), ("repo", name), ("changes", 'CMD ["/bin/sh"]')]
    params += [("changes", change) for change in changes]
    with engine_errors(engine, f"import {name}", _BUILD_S):
        async with engine.stream("POST", "images/create", params=params, data=archive) as answer:
            async for _ in read_progress(answer):
                pass
        return await image_id(engine, name)


async def build_image(
    engine: ContainerEngine, folder: Path, name: str, what: str, notify: Callable[[str], None]
) -> str:
    """Build an image from ``folder/Dockerfile``, pass progress lines to ``notify``, and return its id.

    All of ``folder`` is sent. Steps use the network of the engine and fetch only what they name themselves.

    Raises:
        ConfigError: there is no Dockerfile, or ``name`` is not a valid image name.
        SandboxError: a step failed, or the engine did.
    """
    if not (folder / "Dockerfile").is_file():
        raise ConfigError(f"{folder / 'Dockerfile'}: no such file; name the folder that holds the Dockerfile")
    split_image_name(name)
    params = {"t": name, "rm": "1", "forcerm": "1", "labels": json.dumps({IMAGE_LABEL: what})}
    with (
        await to_thread.run_sync(_context, folder) as context,
        engine_errors(engine, f"build {name}", _BUILD_S),
    ):
        async with engine.stream("POST", "build", params=params, data=read_chunks(context)) as answer:
            async for line in read_progress(answer):
                notify(line)
        return await image_id(engine, name)


async def find_image(engine: ContainerEngine, what: str, label: str, value: str) -> str | None:
    """Return the id of an image of this kind that codetaste made with this label, None if there is none.

    An image inherits the labels of the one that it was made from. So the kind matters, and of several images
    the oldest is taken: the others are made of it.

    Raises:
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, "list images"):
        found = await engine.client.images.list(
            filters={"label": [f"{label}={value}", f"{IMAGE_LABEL}={what}"]}
        )
    # The engine lists the newest first.
    made = [one for one in reversed(found) if not one["Labels"].get(OWNER_LABEL)]
    return str(min(made, key=lambda one: one["Created"])["Id"]) if made else None


async def tag_image(engine: ContainerEngine, ident: str, name: str) -> None:
    """Give an image the further name ``name``, which another image loses.

    Raises:
        ConfigError: ``name`` is not a valid image name.
        SandboxError: there is no such image.
    """
    repository, tag = split_image_name(name)
    with engine_errors(engine, f"name an image {name}"):
        await engine.client.images.tag(ident, repository, tag=tag)


async def image_labels(engine: ContainerEngine, name: str) -> Mapping[str, str]:
    """Return the labels of an image.

    Raises:
        SandboxMissing: it does not exist.
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, f"inspect {name}"):
        return (await engine.client.images.inspect(name))["Config"].get("Labels") or {}


async def has_health_check(engine: ContainerEngine, name: str) -> bool:
    """Return whether containers of an image run a health check; True of an image that does not exist.

    Raises:
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, f"inspect {name}"):
        try:
            config = (await engine.client.images.inspect(name))["Config"] or {}
        except DockerError as error:
            if error.status in _IN_USE_OR_GONE:
                return True
            raise
    test = (config.get("Healthcheck") or {}).get("Test") or ["NONE"]
    return bool(test[0] != "NONE")


async def list_images(engine: ContainerEngine) -> Sequence[Image]:
    """Return the images that codetaste made, the newest first.

    Raises:
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, "list images"):
        found = await engine.client.images.list(filters={"label": [IMAGE_LABEL]})
        images = [
            Image(
                _short_name(engine, name),
                one["Id"],
                one["Labels"][IMAGE_LABEL],
                one["Size"],
                one["Created"],
            )
            for one in found
            if not one["Labels"].get(OWNER_LABEL)
            for name in one.get("RepoTags") or ["(no name)"]
        ]
    return sorted(images, key=lambda image: -image.created)


async def remove_image(engine: ContainerEngine, name: str) -> None:
    """Remove an image.

    Raises:
        SandboxError: it does not exist, or is in use.
    """
    with engine_errors(engine, f"remove {name}"):
        await engine.client.images.delete(name)


async def forget_image(engine: ContainerEngine, name: str) -> None:
    """Take a name from an image, which is removed with its last one. It stays while something needs it.

    Raises:
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, f"remove {name}"):
        try:
            await engine.client.images.delete(name)
        except DockerError as error:
            if error.status not in _IN_USE_OR_GONE:
                raise


async def image_id(engine: ContainerEngine, name: str) -> str:
    """Return the id of an image. Use it within ``engine_errors``.

    Raises:
        ConfigError: ``name`` is empty: engines answer that with a list.
    """
    if not name:
        raise ConfigError("the name of an image is missing")
    return str((await engine.client.images.inspect(name))["Id"])


async def require_image(engine: ContainerEngine, name: str) -> None:
    """Check that an image exists.

    Raises:
        SandboxMissing: it does not; the message has the fix.
        SandboxError: the engine does not answer.
    """
    with engine_errors(engine, f"create sandboxes from {name}"):
        await image_id(engine, name)


def split_image_name(name: str) -> tuple[str, str]:
    """Return repository and tag of an image name; the default tag is "latest".

    Raises:
        ConfigError: ``name`` is not a valid image name.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ConfigError(f"{name!r} cannot be the name of an image: write it as in codetaste/mine:1")
    return match["repository"], match["tag"] or "latest"


async def read_progress(answer: ClientResponse) -> AsyncIterator[str]:
    """Yield the lines that an engine reports of a long call. Use it within ``engine_errors``.

    Raises:
        SandboxError: the call failed; the message has the engine's reason.
    """
    async for raw in answer.content:
        message = json.loads(raw) if raw.strip() else {}
        if "error" in message:
            raise SandboxError(f"the engine reports: {' '.join(str(message['error']).split())}")
        for line in str(message.get("stream") or message.get("status") or "").splitlines():
            if line.strip():
                yield line


def _context(folder: Path) -> IO[bytes]:
    spool = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - the caller closes it
    with tarfile.open(fileobj=spool, mode="w") as archive:
        archive.add(folder, arcname=".")
    spool.seek(0)
    return spool


def _env_changes(env: Mapping[str, str]) -> list[str]:
    return [f"ENV {key}={_quote(value)}" for key, value in env.items()]


def _label_changes(labels: Mapping[str, str]) -> list[str]:
    return [f"LABEL {key}={_quote(value)}" for key, value in labels.items()]


def _quote(value: str) -> str:
    """Return a value as the instructions of a Dockerfile have it."""
    return json.dumps(value).replace("$", r"\$")


def _short_name(engine: ContainerEngine, name: str) -> str:
    """Return an image name without the registry host, which Podman adds to a name that has none."""
    host, _, rest = name.partition("/")
    added = engine.kind == PODMAN and (host == "localhost" or "." in host) and ":" not in host
    return rest if added and rest else name
