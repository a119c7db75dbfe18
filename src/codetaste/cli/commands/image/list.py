"""``codetaste image list`` and ``rm``: the images that codetaste built."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.errors import ConfigError, SandboxMissing
from codetaste.sandbox.docker.engine import AUTO
from codetaste.sandbox.docker.images import image_labels, list_images, remove_image
from codetaste.sandbox.docker.spec import IMAGE_LABEL

if TYPE_CHECKING:
    from codetaste.sandbox.docker.images import Image

_MIB = 1024**2


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
    async with open_engine(engine, socket) as connected:
        images = await list_images(connected)
    if json_:
        print_result(json_document({"images": [_image_to_json(each) for each in images]}))
        return 0
    for each in images:
        built = time.strftime("%Y-%m-%d %H:%M", time.localtime(each.created))
        print_result(f"{each.name:<40} {each.kind:<6} {each.size_bytes // _MIB:>6} MiB  {built}")
    return 0


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
    async with open_engine(engine, socket) as connected:
        try:
            labels = await image_labels(connected, name)
        except SandboxMissing:
            labels = {}
        if IMAGE_LABEL not in labels:
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
