"""``codetaste image``: the images that boxes are made of, built, listed and removed in a container engine."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codetaste.command import say, tell
from codetaste.errors import ConfigError
from codetaste.sandbox.docker_engine import connected
from codetaste.sandbox.docker_image import build_image, list_images, remove_image, split_name
from codetaste.sandbox.docker_socket import AUTO, DOCKER, PODMAN
from codetaste.sandbox.image import LEAN_IMAGE, build_lean

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.sandbox.docker_engine import ContainerEngine
    from codetaste.sandbox.docker_image import Image

_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Where:
    """Which engine is meant, and how to answer."""

    engine: str = AUTO
    socket: Path | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """An image to build: the lean one, or that of a folder with a Dockerfile."""

    lean: bool = False
    dockerfile: Path | None = None
    name: str = ""
    mirrors: bool = True


async def build(wanted: Wanted, where: Where) -> int:
    """Build an image and print its name and id; returns the exit code, 0.

    Raises:
        ConfigError: it is not said what to build, or there is no Dockerfile.
        ToolMissing: a program that builds it is not here.
        SandboxError: there is no engine, or it failed.
    """
    if wanted.lean == (wanted.dockerfile is not None):
        raise ConfigError("say what to build: either --lean, or --dockerfile with the folder that holds it")
    if wanted.dockerfile is not None and not wanted.name:
        raise ConfigError("--name: say what to call the image, as in --name codetaste/mine:1")
    name = wanted.name or LEAN_IMAGE
    split_name(name)
    began = time.monotonic()
    async with _engine(where) as engine:
        if wanted.dockerfile is not None:
            ident = await build_image(engine, wanted.dockerfile, name, "built", tell)
        else:
            ident = await build_lean(engine, name, tell, mirrors=wanted.mirrors)
    if where.as_json:
        say(json.dumps({"name": name, "id": ident, "seconds": round(time.monotonic() - began, 1)}, indent=2))
    else:
        say(f"{name} {ident}")
    return 0


async def show(where: Where) -> int:
    """Print the images that we made, a line each; returns the exit code, 0.

    Raises:
        SandboxError: there is no engine, or it does not answer.
    """
    async with _engine(where) as engine:
        images = await list_images(engine)
    if where.as_json:
        say(json.dumps([_told(image) for image in images], indent=2))
        return 0
    for image in images:
        built = time.strftime("%Y-%m-%d %H:%M", time.localtime(image.created))
        say(f"{image.name:<40} {image.what:<6} {image.size_bytes // _MIB:>6} MiB  {built}")
    return 0


async def remove(name: str, where: Where) -> int:
    """Remove an image; returns the exit code, 0.

    Raises:
        ConfigError: it is none of ours.
        SandboxError: there is no engine, or the image is in use.
    """
    async with _engine(where) as engine:
        known = {name for image in await list_images(engine) for name in (image.name, image.ident)}
        if name not in known:
            raise ConfigError(f"{name}: no image that codetaste made; see: codetaste image list")
        await remove_image(engine, name)
    say(json.dumps({"removed": name}) if where.as_json else f"removed {name}")
    return 0


def _told(image: Image) -> dict[str, str | int]:
    created = datetime.fromtimestamp(image.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "name": image.name,
        "id": image.ident,
        "what": image.what,
        "bytes": image.size_bytes,
        "created": created,
    }


@asynccontextmanager
async def _engine(where: Where) -> AsyncIterator[ContainerEngine]:
    if where.engine not in {AUTO, DOCKER, PODMAN}:
        raise ConfigError(f"--engine {where.engine}: it is one of {AUTO}, {DOCKER}, {PODMAN}")
    async with connected(where.engine, where.socket) as engine:
        tell(f"{engine.kind} {engine.version} at {engine.socket}")
        yield engine
