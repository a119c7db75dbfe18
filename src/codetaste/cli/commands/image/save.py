"""``codetaste image save``: write an image to a file."""

from __future__ import annotations

from pathlib import Path

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.sandbox.docker.engine import AUTO
from codetaste.sandbox.docker.transfer import save_image


@command
async def save(
    image: str, file: Path, /, *, engine: str = AUTO, socket: OptionalPath = None, json_: AsJson = False
) -> int:
    """Write an image to a file; print the file's digest and the image's id.

    Args:
        image: Its name.
        file: The file, a tar archive as of docker save; an existing one is replaced.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        SandboxError: there is no engine or no such image, or the file cannot be written.
        StorageFull: no space left.
    """
    async with open_engine(engine, socket) as connected:
        saved = await save_image(connected, image, file)
    data = {
        "name": image,
        "id": saved.ident,
        "file": str(saved.path),
        "digest": saved.digest,
        "bytes": saved.size_bytes,
    }
    print_result(json_document(data) if json_ else f"{saved.path} {saved.digest}\n{image} {saved.ident}")
    return 0
