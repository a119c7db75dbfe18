"""Images in registries under the names of the published ones, and their names on this machine.

In a registry an image has the last part of its name on this machine, in another repository and with a tag.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from codetaste.environment.image_names import LOCAL_REPOSITORY, InstanceImage
from codetaste.errors import ConfigError
from codetaste.sandbox.docker.images import remove_image, split_image_name, tag_image
from codetaste.sandbox.docker.transfer import pull_image, push_image

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.sandbox.docker.engine import ContainerEngine


def local_name(name: str) -> str:
    """Return the name on this machine of the image ``name``: of an instance's image the published one."""
    try:
        image = InstanceImage.parse(name)
    except ConfigError:
        return name
    return str(InstanceImage(image.instance_id, image.stage))


def remote_name(name: str, repository: str = "", tag: str = "") -> str:
    """Return the name of an image in a registry.

    Args:
        name: on this machine; or in the registry, if ``repository`` is "".
        repository: with the registry's host, as in HOST/ORGANISATION/PROJECT.
        tag: instead of that of ``name``.

    Raises:
        ConfigError: the result would be no name in a registry.
    """
    path, own_tag = split_image_name(name)
    if repository:
        path = f"{repository.rstrip('/')}/{path.rpartition('/')[2]}"
    elif path.startswith(f"{LOCAL_REPOSITORY}/") or "/" not in path:
        raise ConfigError(
            f"{name}: name the repository of the registry that has it, as in --repository HOST/PATH"
        )
    result = f"{path}:{tag or own_tag}"
    split_image_name(result)
    return result


async def pull_published(
    engine: ContainerEngine, name: str, notify: Callable[[str], None], *, repository: str = "", tag: str = ""
) -> tuple[str, str]:
    """Pull an image from a registry and give it its name on this machine; return that and the id.

    Raises:
        ConfigError: the name of the image cannot be one in a registry.
        SandboxError: the registry does not have it, or refused it.
    """
    remote = remote_name(name, repository, tag)
    ident = await pull_image(engine, remote, notify)
    local = local_name(name)
    if split_image_name(local) != split_image_name(remote):
        await tag_image(engine, ident, local)
        if repository:
            await remove_image(engine, remote)
    return local, ident


async def push_published(
    engine: ContainerEngine, name: str, notify: Callable[[str], None], *, repository: str = "", tag: str = ""
) -> str:
    """Push an image of this machine to a registry; return its name there.

    Raises:
        ConfigError: the name of the image cannot be one in a registry.
        SandboxError: the image does not exist, or the registry refused it.
    """
    remote = remote_name(name, repository, tag)
    if split_image_name(remote) == split_image_name(name):
        await push_image(engine, remote, notify)
        return remote
    await tag_image(engine, name, remote)
    try:
        await push_image(engine, remote, notify)
    finally:
        with anyio.CancelScope(shield=True):
            await remove_image(engine, remote)
    return remote
