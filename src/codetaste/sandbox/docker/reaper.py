"""Removal of what killed runs have left in a container engine, when the next run starts.

Only objects with the labels of codetaste are removed, and only orphans: their process is gone or, where that
cannot be known (another host, another container, before a reboot), their deadline has passed. Objects of a
living run are never touched.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.core.processes import identity_alive
from codetaste.errors import SandboxError
from codetaste.sandbox.docker.engine import delete_resource, engine_errors
from codetaste.sandbox.docker.spec import OWNER_LABEL, is_expired

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.sandbox.docker.engine import ContainerEngine

_AT_ONCE = 4


@dataclass(frozen=True, slots=True)
class ReapedCounts:
    """Number of removed objects of each kind."""

    containers: int = 0
    networks: int = 0
    volumes: int = 0
    images: int = 0

    def __bool__(self) -> bool:
        return any(astuple(self))

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in asdict(self).items() if count)


async def remove_orphans(engine: ContainerEngine) -> ReapedCounts:
    """Remove the orphans of killed runs, and return their number.

    Raises:
        SandboxError: the engine does not answer, or could not remove one.
    """
    owned, client = {"label": [OWNER_LABEL]}, engine.client
    with engine_errors(engine, "list leftovers of earlier runs"):
        containers = await client.containers.list(all=True, filters=json.dumps(owned))
        networks = await client.networks.list(filters=owned)
        volumes = (await client.volumes.list(filters=owned))["Volumes"] or []  # type: ignore[no-untyped-call]
        images = await client.images.list(filters=owned)
    # In this order: a network or a volume cannot be removed before the containers that use it.
    return ReapedCounts(
        await _remove(engine, "containers", _orphans(containers, "Id"), {"force": "1", "v": "1"}),
        await _remove(engine, "networks", _orphans(networks, "Id"), {}),
        await _remove(engine, "volumes", _orphans(volumes, "Name"), {}),
        await _remove(engine, "images", _image_names(images), {}),
    )


def _orphans(found: Iterable[Any], name: str) -> list[str]:
    orphans = []
    for one in found:
        labels = one["Labels"] or {}
        if owner := labels.get(OWNER_LABEL):
            alive = identity_alive(owner)
            if is_expired(labels) if alive is None else not alive:
                orphans.append(str(one[name]))
    return orphans


def _image_names(images: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names of orphans: an image that another one was made of can only lose its name."""
    orphans = set(_orphans(images, "Id"))
    return [name for one in images if one["Id"] in orphans for name in one.get("RepoTags") or [one["Id"]]]


async def _remove(engine: ContainerEngine, kind: str, names: Sequence[str], params: Mapping[str, str]) -> int:
    problems: list[SandboxError] = []
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def one(name: str) -> None:
        async with limiter:
            try:
                await delete_resource(engine, f"{kind}/{name}", **params)
            except SandboxError as error:
                problems.append(error)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    if problems:
        raise problems[0]
    return len(names)
