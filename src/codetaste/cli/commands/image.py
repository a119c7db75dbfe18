"""``codetaste image``: build, list and remove the images of sandboxes in a container engine."""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codetaste.console import notify, print_result
from codetaste.errors import ConfigError
from codetaste.sandbox.docker.engine import AUTO, DOCKER, PODMAN, connect_engine
from codetaste.sandbox.docker.images import build_image, list_images, remove_image, split_image_name
from codetaste.sandbox.docker.lean_image import LEAN_IMAGE, build_lean_image

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.sandbox.docker.engine import ContainerEngine
    from codetaste.sandbox.docker.images import Image

_MIB = 1024**2


@dataclass(frozen=True, slots=True)
class ImageEngineArguments:
    """The container engine to use, and the output format."""

    engine: str = AUTO
    socket: Path | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class ImageBuildArguments:
    """The image to build: the lean image, or the one of a folder with a Dockerfile."""

    lean: bool = False
    dockerfile: Path | None = None
    name: str = ""
    mirrors: bool = True


async def build_requested_image(
    image_arguments: ImageBuildArguments, engine_arguments: ImageEngineArguments
) -> int:
    """Build an image and print its name and id; returns the exit code, 0.

    Raises:
        ConfigError: the image to build is not given, or there is no Dockerfile.
        ToolMissing: a program that builds it is missing.
        SandboxError: there is no engine, or it failed.
    """
    if image_arguments.lean == (image_arguments.dockerfile is not None):
        raise ConfigError("give the image to build: either --lean, or --dockerfile with its folder")
    if image_arguments.dockerfile is not None and not image_arguments.name:
        raise ConfigError("--name: give a name for the image, as in --name codetaste/mine:1")
    name = image_arguments.name or LEAN_IMAGE
    split_image_name(name)
    started_s = time.monotonic()
    async with _connect(engine_arguments) as engine:
        if image_arguments.dockerfile is not None:
            ident = await build_image(engine, image_arguments.dockerfile, name, "built", notify)
        else:
            ident = await build_lean_image(engine, name, notify, mirrors=image_arguments.mirrors)
    if engine_arguments.as_json:
        print_result(
            json.dumps(
                {"name": name, "id": ident, "seconds": round(time.monotonic() - started_s, 1)}, indent=2
            )
        )
    else:
        print_result(f"{name} {ident}")
    return 0


async def print_images(engine_arguments: ImageEngineArguments) -> int:
    """Print the images that codetaste built, one per line; returns the exit code, 0.

    Raises:
        SandboxError: there is no engine, or it does not respond.
    """
    async with _connect(engine_arguments) as engine:
        images = await list_images(engine)
    if engine_arguments.as_json:
        print_result(json.dumps([_image_to_json(image) for image in images], indent=2))
        return 0
    for image in images:
        built = time.strftime("%Y-%m-%d %H:%M", time.localtime(image.created))
        print_result(f"{image.name:<40} {image.kind:<6} {image.size_bytes // _MIB:>6} MiB  {built}")
    return 0


async def remove_listed_image(name: str, engine_arguments: ImageEngineArguments) -> int:
    """Remove an image; returns the exit code, 0.

    Raises:
        ConfigError: codetaste did not build the image.
        SandboxError: there is no engine, or the image is in use.
    """
    async with _connect(engine_arguments) as engine:
        known = {name for image in await list_images(engine) for name in (image.name, image.ident)}
        if name not in known:
            raise ConfigError(f"{name}: not an image that codetaste built; see: codetaste image list")
        await remove_image(engine, name)
    print_result(json.dumps({"removed": name}) if engine_arguments.as_json else f"removed {name}")
    return 0


def _image_to_json(image: Image) -> dict[str, str | int]:
    created = datetime.fromtimestamp(image.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "name": image.name,
        "id": image.ident,
        "what": image.kind,
        "bytes": image.size_bytes,
        "created": created,
    }


@asynccontextmanager
async def _connect(engine_arguments: ImageEngineArguments) -> AsyncIterator[ContainerEngine]:
    if engine_arguments.engine not in {AUTO, DOCKER, PODMAN}:
        raise ConfigError(f"--engine {engine_arguments.engine}: it is one of {AUTO}, {DOCKER}, {PODMAN}")
    async with connect_engine(engine_arguments.engine, engine_arguments.socket) as engine:
        notify(f"{engine.kind} {engine.version} at {engine.socket}")
        yield engine
