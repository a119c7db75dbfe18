"""``codetaste image``: build, list and remove the images of sandboxes in a container engine."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cyclopts import App

from codetaste.cli.options import AsJson, Flag, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.errors import ConfigError
from codetaste.sandbox.docker.bootstrap.lean_image import LEAN_IMAGE, build_lean_image
from codetaste.sandbox.docker.engine import AUTO, DOCKER, PODMAN, connect_engine
from codetaste.sandbox.docker.images import build_image, list_images, remove_image, split_image_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.sandbox.docker.engine import ContainerEngine
    from codetaste.sandbox.docker.images import Image

_MIB = 1024**2


image = App(name="image")


@image.command
@command
async def build(
    *,
    lean: Flag = False,
    dockerfile: OptionalPath = None,
    name: str = "",
    no_mirrors: Flag = False,
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Build an image for coding agents: a lean Debian, which needs no image registry, or your own.

    Args:
        lean: Debian with git, Python and ripgrep, from this machine's package mirrors, by mmdebstrap.
        dockerfile: A folder with a Dockerfile; the whole folder is sent to the engine.
        name: Name of the image; the lean image has a default name.
        no_mirrors: Remove the package mirrors from the lean image.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket; default DOCKER_HOST, CONTAINER_HOST or the usual paths.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the image to build is not given, or there is no Dockerfile.
        ToolMissing: a program that builds it is missing.
        SandboxError: there is no engine, or it failed.
    """
    if lean == (dockerfile is not None):
        raise ConfigError("give the image to build: either --lean, or --dockerfile with its folder")
    if dockerfile is not None and not name:
        raise ConfigError("--name: give a name for the image, as in --name codetaste/mine:1")
    name = name or LEAN_IMAGE
    split_image_name(name)
    started_s = time.monotonic()
    async with _connect(engine, socket) as connected:
        if dockerfile is not None:
            ident = await build_image(connected, dockerfile, name, "built", notify)
        else:
            ident = await build_lean_image(connected, name, notify, mirrors=not no_mirrors)
    seconds = round(time.monotonic() - started_s, 1)
    data = {"name": name, "id": ident, "seconds": seconds}
    print_result(json_document(data) if json_ else f"{name} {ident}")
    return 0


@image.command(name="list")
@command
async def print_images(*, engine: str = AUTO, socket: OptionalPath = None, json_: AsJson = False) -> int:
    """List the images that codetaste built.

    Args:
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        SandboxError: there is no engine, or it does not respond.
    """
    async with _connect(engine, socket) as connected:
        images = await list_images(connected)
    if json_:
        print_result(json_document({"images": [_image_to_json(each) for each in images]}))
        return 0
    for each in images:
        built = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.created))
        print_result(f"{each.name:<40} {each.kind:<6} {each.size_bytes // _MIB:>6} MiB  {built}")
    return 0


@image.command
@command
async def rm(name: str, /, *, engine: str = AUTO, socket: OptionalPath = None, json_: AsJson = False) -> int:
    """Remove an image that codetaste built.

    Args:
        name: The image.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        ConfigError: codetaste did not build the image.
        SandboxError: there is no engine, or the image is in use.
    """
    async with _connect(engine, socket) as connected:
        known = {name for each in await list_images(connected) for name in (each.name, each.ident)}
        if name not in known:
            raise ConfigError(f"{name}: not an image that codetaste built; see: codetaste image list")
        await remove_image(connected, name)
    print_result(json_document({"removed": name}) if json_ else f"removed {name}")
    return 0


def _image_to_json(built: Image) -> dict[str, str | int]:
    created = datetime.fromtimestamp(built.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    return {
        "name": built.name,
        "id": built.ident,
        "what": built.kind,
        "bytes": built.size_bytes,
        "created": created,
    }


@asynccontextmanager
async def _connect(kind: str, socket: Path | None) -> AsyncIterator[ContainerEngine]:
    if kind not in {AUTO, DOCKER, PODMAN}:
        raise ConfigError(f"--engine {kind}: it is one of {AUTO}, {DOCKER}, {PODMAN}")
    async with connect_engine(kind, socket) as engine:
        notify(f"{engine.kind} {engine.version} at {engine.socket}")
        yield engine
