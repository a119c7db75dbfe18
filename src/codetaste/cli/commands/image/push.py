"""``codetaste image push``: push an image to a registry."""

from __future__ import annotations

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.environment.published_images import push_published
from codetaste.sandbox.docker.engine import AUTO


@command
async def push(
    image: str,
    /,
    *,
    repository: str = "",
    tag: str = "",
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Push an image, with the login that docker login or podman login has stored.

    Args:
        image: Its name.
        repository: Where it goes, as in HOST/ORGANISATION/PROJECT; default what its own name says.
        tag: Its tag there; default that of its name.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the name is not one in a registry.
        SandboxError: there is no engine or no such image, or the registry refused it.
    """
    async with open_engine(engine, socket) as connected:
        pushed = await push_published(connected, image, notify, repository=repository, tag=tag)
    print_result(json_document({"name": image, "pushed": pushed}) if json_ else f"pushed {pushed}")
    return 0
