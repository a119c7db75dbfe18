"""Images committed from containers: drafts, which end with the process that made them, and finished images.

An engine commits only the files of a container itself, none of a mount or a volume. Variables and folders of
the host that a sandbox has are not in its container's config, so that no image has them.
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import ConfigError
from codetaste.sandbox.docker.engine import delete_resource, engine_errors
from codetaste.sandbox.docker.images import split_image_name
from codetaste.sandbox.docker.spec import IMAGE_LABEL, empty_labels, make_labels

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.sandbox.docker.engine import ContainerEngine

COMMIT_S = 1800.0
"""For a commit: an engine writes some gigabytes, on a slow disk."""
_SHELL_OF_ROOT = ("ENTRYPOINT []", 'CMD ["/bin/sh"]', "USER root", "WORKDIR /")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_VALUE = re.compile(r'[^"\\$\x00-\x1f\x7f]*')
"""What both engines read in the same way between quotes."""


def image_changes(
    what: str, labels: Mapping[str, str], env: Mapping[str, str], instructions: Sequence[str], *, draft: bool
) -> list[str]:
    """Return the instructions of a commit: by default a shell of root, without a sandbox's settings.

    Args:
        what: kind of the image, for its label.
        labels: further labels.
        env: variables, in addition to those of the image that the container was created from.
        instructions: further ones of a Dockerfile: CMD, ENTRYPOINT, USER, WORKDIR.
        draft: keep the labels of the container, by which the image is removed once this process is gone.

    Raises:
        ConfigError: a label or a variable cannot be in an image.
    """
    owner = {} if draft else empty_labels()
    return [
        *_SHELL_OF_ROOT,
        *_assignments("ENV", env),
        *_assignments("LABEL", {**labels, **owner, IMAGE_LABEL: what}),
        *instructions,
    ]


async def commit_container(
    engine: ContainerEngine, container: str, name: str, changes: Sequence[str], within_s: float
) -> str:
    """Commit the files of a container as the image ``name``, and return its id.

    The container may run, but nothing in it may write meanwhile.

    Raises:
        ConfigError: ``name`` is not a valid image name.
        SandboxError: the engine failed, or needed more than ``within_s`` seconds.
    """
    repository, tag = split_image_name(name)
    with engine_errors(engine, f"commit a sandbox as {name}", within_s):
        source = engine.client.containers.container(container)
        # Not paused: a supervisor that is paused for long counts as lost.
        # Podman refuses a request without a body.
        committed = await source.commit(
            repository=repository, tag=tag, changes=list(changes), config={}, pause=False
        )
        return str(committed["Id"])


async def finish_image(
    engine: ContainerEngine, draft: str, name: str, labels: Mapping[str, str] | None = None
) -> str:
    """Make the image ``name`` of the draft with the name ``draft``, which is removed, and return its id.

    Only its labels differ: it is not removed when this process is gone, and has ``labels`` in addition.

    Raises:
        ConfigError: ``name`` is not a valid image name, or a label cannot be in an image.
        SandboxMissing: there is no such draft.
        SandboxError: the engine failed.
    """
    changes = [*_assignments("LABEL", {**(labels or {}), **empty_labels()})]
    container = f"codetaste-{secrets.token_hex(6)}"
    config: dict[str, Any] = {"Image": draft, "Labels": make_labels("", "", COMMIT_S)}
    try:
        with anyio.CancelScope(shield=True), engine_errors(engine, f"finish the image {draft}"):
            await engine.client.containers.create(config, name=container)
        ident = await commit_container(engine, container, name, changes, COMMIT_S)
    finally:
        with anyio.CancelScope(shield=True):
            await delete_resource(engine, f"containers/{container}", v="1", force="1")
    await delete_resource(engine, f"images/{draft}")
    return ident


def _assignments(instruction: str, values: Mapping[str, str]) -> Iterator[str]:
    for key, value in values.items():
        if not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
            raise ConfigError(
                f"{instruction} {key}={value!r} cannot be in an image: "
                'write it without control characters, ", \\ and $'
            )
        yield f'{instruction} {key}="{value}"'
