"""What a container engine has of an instance's environment already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.environment.base_image.recipe import BASES, polyglot_image
from codetaste.environment.images.names import ImageStage, image_name
from codetaste.environment.leak_search.image import image_layers
from codetaste.errors import SandboxError, SandboxMissing
from codetaste.sandbox.config import is_image_name
from codetaste.sandbox.docker import images
from codetaste.sandbox.docker.engine import engine_errors
from codetaste.sandbox.docker.images import image_id, image_labels, tag_image
from codetaste.sandbox.docker.provider import DockerSandboxProvider
from codetaste.sandbox.docker.spec import IMAGE_LABEL

if TYPE_CHECKING:
    from codetaste.benchmark.instance import Instance
    from codetaste.sandbox.base import SandboxProvider


async def find_image(sandboxes: SandboxProvider, name: str) -> str:
    """Return the id of an image in the engine of ``sandboxes``; "" if it has none of this name or id.

    Raises:
        SandboxError: the engine does not answer.
    """
    if not isinstance(sandboxes, DockerSandboxProvider) or not (name and is_image_name(name)):
        return ""
    try:
        with engine_errors(sandboxes.engine, f"look for {name}"):
            return await image_id(sandboxes.engine, name)
    except SandboxMissing:
        return ""


async def find_polyglot_image(sandboxes: SandboxProvider) -> str:
    """Return the name of a polyglot image in the engine; that of the paper's if there is none.

    Raises:
        SandboxError: the engine does not answer.
    """
    for name in map(polyglot_image, BASES):
        if await find_image(sandboxes, name):
            return name
    return polyglot_image(BASES[0])


async def find_published_image(sandboxes: SandboxProvider, name: str) -> str:
    """Return the id of the image of this name if others made it, such as a pulled one; "" otherwise.

    Raises:
        SandboxError: the engine does not answer.
    """
    ident = await find_image(sandboxes, name)
    if not ident or not isinstance(sandboxes, DockerSandboxProvider):
        return ""
    return "" if IMAGE_LABEL in await image_labels(sandboxes.engine, ident) else ident


async def added_bytes(sandboxes: SandboxProvider, image: str, base: str) -> int:
    """Return how much larger an image is than the base image that it was made from, bytes.

    Raises:
        SandboxMissing: there is no such image.
        SandboxError: the engine does not answer.
    """
    if not isinstance(sandboxes, DockerSandboxProvider):
        return 0
    with engine_errors(sandboxes.engine, f"inspect {image}"):
        inspect = sandboxes.engine.client.images.inspect
        size, base_size = [int((await inspect(name))["Size"]) for name in (image, base)]
    return max(0, size - base_size)


async def forget_image(sandboxes: SandboxProvider, name: str) -> None:
    """Take a name from an image, which is removed with its last one.

    Raises:
        SandboxError: the engine does not answer.
    """
    if isinstance(sandboxes, DockerSandboxProvider):
        await images.forget_image(sandboxes.engine, name)


async def trusted_layers(sandboxes: SandboxProvider, image: str) -> tuple[str, ...]:
    """Return the ids of the layers of the base image, which was made without any instance.

    Raises:
        SandboxMissing: there is no such image.
        SandboxError: the engine does not answer, or sandboxes are no containers.
    """
    if not isinstance(sandboxes, DockerSandboxProvider):
        raise SandboxError("only container engines have images")
    return await image_layers(sandboxes.engine, image)


async def tag_setup_image(sandboxes: SandboxProvider, ident: str, instance: Instance) -> None:
    """Give the setup image of an instance its published name.

    Raises:
        SandboxError: the engine failed.
    """
    if isinstance(sandboxes, DockerSandboxProvider):
        await tag_image(sandboxes.engine, ident, image_name(instance, ImageStage.SETUP))
