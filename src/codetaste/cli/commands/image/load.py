"""``codetaste image load``: load an image from a file."""

from __future__ import annotations

from pathlib import Path

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import print_result
from codetaste.sandbox.docker.engine import AUTO
from codetaste.sandbox.docker.transfer import load_image


@command
async def load(
    file: Path,
    /,
    *,
    digest: str = "",
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Load an image from a file; print its name and id.

    Args:
        file: The file, of codetaste image save or docker save.
        digest: The expected digest of the file, or the id of its image; another file is not loaded.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the file is not one with an image, or not the expected one.
        SandboxError: there is no engine, or it refused the file.
    """
    async with open_engine(engine, socket) as connected:
        loaded = await load_image(connected, file, digest)
    data = {"name": loaded.name, "id": loaded.ident, "file": str(loaded.path), "digest": loaded.digest}
    print_result(json_document(data) if json_ else f"{loaded.name} {loaded.ident}")
    return 0
