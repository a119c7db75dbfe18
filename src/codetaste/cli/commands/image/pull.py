"""``codetaste image pull``: pull an image from a registry."""

from __future__ import annotations

import os

from codetaste.cli.commands.image.engine import open_engine
from codetaste.cli.options import AsJson, OptionalPath
from codetaste.console.command import command
from codetaste.console.json import json_document
from codetaste.console.streams import notify, print_result
from codetaste.environment.published_images import pull_published
from codetaste.sandbox.docker.engine import AUTO

_REPOSITORY, _TAG = "CODETASTE_IMAGE_REPOSITORY", "CODETASTE_INSTANCE_IMAGE_TAG"
"""Variables of the published harness."""


@command
async def pull(
    image: str,
    /,
    *,
    repository: str = "",
    tag: str = "",
    engine: str = AUTO,
    socket: OptionalPath = None,
    json_: AsJson = False,
) -> int:
    """Pull an image. That of an instance gets its published name on this machine, so that it is used.

    Args:
        image: Its name, as in OWNER__REPO-HASH8__runtime.
        repository: Where it is, as in HOST/ORGANISATION/PROJECT; default $CODETASTE_IMAGE_REPOSITORY.
        tag: Its tag there; default $CODETASTE_INSTANCE_IMAGE_TAG, or that of its name.
        engine: docker, podman, or auto for the first that responds.
        socket: The engine's socket.
        json_: Print the result as JSON.

    Raises:
        ConfigError: the name is not one in a registry.
        SandboxError: there is no engine, or the registry does not have it.
    """
    where = repository or os.environ.get(_REPOSITORY, "")
    version = tag or os.environ.get(_TAG, "")
    async with open_engine(engine, socket) as connected:
        name, ident = await pull_published(connected, image, notify, repository=where, tag=version)
    print_result(json_document({"name": name, "id": ident}) if json_ else f"{name} {ident}")
    return 0
