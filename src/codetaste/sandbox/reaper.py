"""What runs that were killed have left in a container engine, removed when the next run starts.

Only what carries our labels, and of that only what nobody can want any more: its process is gone, or, where
that cannot be told from here (another machine, another container, before a restart), its deadline is over.
What belongs to a living run is never touched.
"""

from __future__ import annotations

import json
from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

import anyio

from codetaste.errors import SandboxError
from codetaste.sandbox.docker_engine import asking, delete
from codetaste.sandbox.docker_labels import OWNER, is_over
from codetaste.sandbox.owner import is_alive

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.sandbox.docker_engine import ContainerEngine

_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Reaped:
    """How many of each were removed."""

    containers: int = 0
    networks: int = 0
    volumes: int = 0
    images: int = 0

    def __bool__(self) -> bool:
        return any(astuple(self))

    def __str__(self) -> str:
        return ", ".join(f"{count} {kind}" for kind, count in asdict(self).items() if count)


async def reap(engine: ContainerEngine) -> Reaped:
    """Remove what dead runs have left, and return how much it was.

    Raises:
        SandboxError: the engine does not answer, or will not remove it.
    """
    ours = json.dumps({"label": [OWNER]})
    with asking(engine, "list what earlier runs have left"):
        containers = await engine.call("GET", "containers/json", {"all": "1", "filters": ours})
        networks = await engine.call("GET", "networks", {"filters": ours})
        volumes = (await engine.call("GET", "volumes", {"filters": ours}))["Volumes"] or []
        images = await engine.call("GET", "images/json", {"filters": ours})
    # In this order: a network or a volume cannot go before the containers that have it.
    return Reaped(
        await _remove(engine, "containers", _orphans(containers, "Id"), {"force": "1", "v": "1"}),
        await _remove(engine, "networks", _orphans(networks, "Id"), {}),
        await _remove(engine, "volumes", _orphans(volumes, "Name"), {}),
        await _remove(engine, "images", _orphans(images, "Id"), {}),
    )


def _orphans(found: Sequence[Mapping[str, Any]], name: str) -> list[str]:
    return [str(one[name]) for one in found if _is_orphan(one.get("Labels") or {})]


def _is_orphan(told: Mapping[str, str]) -> bool:
    if not told.get(OWNER):
        return False
    alive = is_alive(told[OWNER])
    return is_over(told) if alive is None else not alive


async def _remove(engine: ContainerEngine, kind: str, names: Sequence[str], params: Mapping[str, str]) -> int:
    """Remove them, some at once, and return how many they were."""
    problems: list[SandboxError] = []
    turn = anyio.CapacityLimiter(_TOGETHER)

    async def one(name: str) -> None:
        async with turn:
            try:
                await delete(engine, f"{kind}/{name}", **params)
            except SandboxError as error:
                problems.append(error)

    async with anyio.create_task_group() as tasks:
        for name in names:
            tasks.start_soon(one, name)
    if problems:
        raise problems[0]
    return len(names)
