"""Images on their way between machines: in a file, or by a registry.

A file has one image, with its name, in the format of ``docker save``. Its image is known by its id, which is
a digest of its configuration and so of all its layers, and by the digest of the file.
"""

from __future__ import annotations

import base64
import json
import os
import re
import tarfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from codetaste.core.files import open_regular_file, storage_error
from codetaste.core.hashing import file_sha256
from codetaste.core.text import one_line
from codetaste.errors import ConfigError, SandboxError
from codetaste.sandbox.docker.archive import CHUNK_BYTES, read_chunks
from codetaste.sandbox.docker.engine import DOCKER, engine_errors
from codetaste.sandbox.docker.images import image_id, read_progress, split_image_name

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from codetaste.sandbox.docker.engine import ContainerEngine

_TRANSFER_S = 4 * 3600.0
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
_LOADED = re.compile(r"Loaded image(?: ID)?: (\S+)")
_MANIFEST = "manifest.json"
_MAX_CONFIG_BYTES = 64 * 1024**2
_REGISTRY_AUTH = "X-Registry-Auth"


@dataclass(frozen=True, slots=True)
class ImageFile:
    """A file with an image; ``digest`` is the sha256 of the file, ``ident`` the id of its image."""

    path: Path
    name: str
    ident: str
    digest: str
    size_bytes: int


async def save_image(engine: ContainerEngine, name: str, path: Path) -> ImageFile:
    """Write an image to a file. A file that is there is replaced when the new one is complete.

    Raises:
        SandboxMissing: the image does not exist.
        SandboxError: the engine failed, or the file cannot be written.
        StorageFull: no space left.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    digest, size = sha256(), 0
    try:
        with engine_errors(engine, f"save {name}", _TRANSFER_S):
            ident = await image_id(engine, name)
            async with (
                engine.stream("GET", f"images/{name}/get", params={}) as answer,
                await _create(partial) as file,
            ):
                while chunk := await answer.content.read(CHUNK_BYTES):
                    digest.update(chunk)
                    size += len(chunk)
                    try:
                        await file.write(chunk)
                    except OSError as error:
                        raise storage_error(error, path, SandboxError) from error
        await to_thread.run_sync(partial.replace, path)
    finally:
        # Its folder may be no folder; what went wrong is reported already.
        with anyio.CancelScope(shield=True), suppress(OSError):
            await anyio.Path(partial).unlink()
    return ImageFile(path, name, ident, f"sha256:{digest.hexdigest()}", size)


async def _create(path: Path) -> anyio.AsyncFile[bytes]:
    try:
        await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True)
        return await anyio.open_file(path, "wb")
    except OSError as error:
        raise storage_error(error, path, SandboxError) from error


async def load_image(engine: ContainerEngine, path: Path, digest: str = "") -> ImageFile:
    """Load the image of a file. It keeps its id, and its name if it has one.

    Args:
        engine: which gets the image.
        path: the file.
        digest: the expected digest, of the file or of its image; with another one nothing is loaded.

    Raises:
        ConfigError: the file is not one of an image, or its digest is not the expected one.
        SandboxError: the engine refused it.
    """
    found = await to_thread.run_sync(_read_image_file, path, digest)
    names: list[str] = []
    with (
        await to_thread.run_sync(open_regular_file, path) as file,
        engine_errors(engine, f"load {path}", _TRANSFER_S),
    ):
        upload = read_chunks(file)
        async with engine.stream("POST", "images/load", params={"quiet": "1"}, data=upload) as answer:
            async for line in read_progress(answer):
                names += _LOADED.findall(line)
        if not names:
            raise SandboxError(f"{engine.kind} at {engine.socket} loaded no image from {path}")
        loaded = await image_id(engine, names[0])
    if loaded.removeprefix("sha256:") != found.ident.removeprefix("sha256:"):
        raise SandboxError(f"{path}: the engine has loaded the image {loaded}, not {found.ident}")
    return ImageFile(path, found.name or names[0], loaded, found.digest, found.size_bytes)


def _read_image_file(path: Path, expected: str) -> ImageFile:
    wanted = _DIGEST.fullmatch(expected)
    if expected and wanted is None:
        raise ConfigError(f"--digest {expected}: write it as sha256: and 64 hex digits")
    try:
        name, ident = _read_manifest(path)
        digest = f"sha256:{file_sha256(path)}"
        size = path.stat().st_size
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}") from None
    except (tarfile.TarError, ValueError, LookupError, TypeError, EOFError) as error:
        raise ConfigError(
            f"{path} is not a file with one image ({one_line(error)}); codetaste image save makes them"
        ) from None
    if wanted is not None and wanted[1] not in {
        digest.removeprefix("sha256:"),
        ident.removeprefix("sha256:"),
    }:
        raise ConfigError(
            f"{path} is not the expected file: its digest is {digest}, its image {ident}, "
            f"neither is {expected}; it was not loaded"
        )
    return ImageFile(path, name, ident, digest, size)


def _read_manifest(path: Path) -> tuple[str, str]:
    """Return the name, "" for none, and the id of the image in a file."""
    with open_regular_file(path) as file, tarfile.open(fileobj=file, mode="r:*") as archive:
        entries = json.loads(_read_member(archive, _MANIFEST))
        if len(entries) != 1:
            raise ValueError(f"it has {len(entries)} images")
        config = _read_member(archive, entries[0]["Config"])
    return next(iter(entries[0].get("RepoTags") or ()), ""), f"sha256:{sha256(config).hexdigest()}"


def _read_member(archive: tarfile.TarFile, name: str) -> bytes:
    file: IO[bytes] | None = archive.extractfile(name)
    if file is None or archive.getmember(name).size > _MAX_CONFIG_BYTES:
        raise ValueError(f"{name} is not a small regular file")
    return file.read()


async def push_image(engine: ContainerEngine, name: str, notify: Callable[[str], None]) -> None:
    """Push an image to the registry in its name, with what the engine's users have logged in with.

    Raises:
        ConfigError: ``name`` is not a valid image name.
        SandboxError: the image does not exist, or the registry refused it.
    """
    repository, tag = split_image_name(name)
    with engine_errors(engine, f"push {name}", _TRANSFER_S):
        headers = await _authentication(engine, repository)
        path = f"images/{repository}/push"
        async with engine.stream("POST", path, params={"tag": tag}, headers=headers) as answer:
            async for line in read_progress(answer):
                notify(line)


async def pull_image(engine: ContainerEngine, name: str, notify: Callable[[str], None]) -> str:
    """Pull an image from the registry in its name, and return its id.

    Raises:
        ConfigError: ``name`` is not a valid image name.
        SandboxError: the registry does not have it, or refused it.
    """
    repository, tag = split_image_name(name)
    reference = f"{repository}:{tag}"
    with engine_errors(engine, f"pull {name}", _TRANSFER_S):
        headers = await _authentication(engine, repository)
        params = {"fromImage": reference}
        async with engine.stream("POST", "images/create", params=params, headers=headers) as answer:
            async for line in read_progress(answer):
                notify(line)
        return await image_id(engine, reference)


async def _authentication(engine: ContainerEngine, repository: str) -> Mapping[str, str]:
    """Return the header with the login that the engine's own client has stored for a registry.

    Podman's service reads its own; Docker wants the header, even without a login.
    """
    if engine.kind != DOCKER:
        return {}
    login = await to_thread.run_sync(_stored_login, repository.partition("/")[0])
    return {_REGISTRY_AUTH: base64.urlsafe_b64encode(json.dumps(login).encode()).decode()}


def _stored_login(registry: str) -> Mapping[str, str]:
    folder = os.environ.get("DOCKER_CONFIG") or Path(os.path.expanduser("~"), ".docker")  # noqa: PTH111
    path = Path(folder, "config.json")
    try:
        stored: Any = json.loads(path.read_text("utf-8"))
        entry = stored.get("auths", {}).get(registry) or {}
        user, _, password = base64.b64decode(entry.get("auth", "")).decode().partition(":")
        helper = stored.get("credHelpers", {}).get(registry) or stored.get("credsStore")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"{path}: the logins of registries cannot be read ({type(error).__name__})"
        ) from None
    if not user and helper:
        raise ConfigError(
            f"{path} keeps the login for {registry} in the helper {helper}, which codetaste does not run: "
            f"use docker push or docker pull"
        )
    token = {"identitytoken": entry["identitytoken"]} if entry.get("identitytoken") else {}
    return (
        {"username": user, "password": password, "serveraddress": registry, **token} if user or token else {}
    )
