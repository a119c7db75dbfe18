"""Disk usage of sandboxes where the engine's storage has no quota: one request measures all of them.

The engine walks the files of every container, so a measurement follows every few seconds, and less often when
the walk takes long.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import anyio

from codetaste.core.processes import process_identity
from codetaste.errors import SandboxError
from codetaste.sandbox.docker.engine import engine_errors
from codetaste.sandbox.docker.spec import OWNER_LABEL, RUN_LABEL

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from codetaste.sandbox.docker.engine import ContainerEngine

INTERVAL_S = 3.0
_SHARE = 4
"""The engine spends at most one part in this many of its time on the measurement."""
_WITHIN_S = 300.0


class DiskWatch:
    """The disk limits of containers by id, and a callback for each that exceeds its own."""

    def __init__(self, engine: ContainerEngine, run: str, every_s: float = INTERVAL_S) -> None:
        self._engine = engine
        self._run = run
        self._every_s = every_s
        self._limits: dict[str, tuple[int, Callable[[], Awaitable[None]]]] = {}
        self._volumes: set[str] = set()
        self._wanted = anyio.Event()

    def add(
        self, ident: str, disk_bytes: int, on_full: Callable[[], Awaitable[None]], *, volumes: bool
    ) -> None:
        """Call ``on_full`` once container ``ident`` has written ``disk_bytes`` or more."""
        self._limits[ident] = (disk_bytes, on_full)
        if volumes:
            self._volumes.add(ident)
        self._wanted.set()

    def remove(self, ident: str) -> None:
        """Stop watching that container."""
        self._limits.pop(ident, None)
        self._volumes.discard(ident)

    async def watch(self) -> None:
        """Measure repeatedly, for ever; an engine that does not answer gets the next request later."""
        while True:
            if not self._limits:
                self._wanted = anyio.Event()
                await self._wanted.wait()
            began = anyio.current_time()
            try:
                written = await self._written()
            except SandboxError:
                written = {}
            for ident, size in written.items():
                limit, on_full = self._limits.get(ident, (size + 1, None))
                if size >= limit and on_full is not None:
                    self.remove(ident)
                    await on_full()
            await anyio.sleep(max(self._every_s, _SHARE * (anyio.current_time() - began)))

    async def _written(self) -> Mapping[str, int]:
        own_labels = {"label": [f"{RUN_LABEL}={self._run}", f"{OWNER_LABEL}={process_identity()}"]}
        with engine_errors(self._engine, "measure the disk usage of its containers", _WITHIN_S):
            containers = self._engine.client.containers
            found = await containers.list(size=True, filters=json.dumps(own_labels))
            # The engine leaves out a size of 0.
            sizes = {one["Id"]: int(one["SizeRw"]) if "SizeRw" in one else 0 for one in found}
            if not self._volumes:
                return sizes
            usage = await self._engine.call("GET", "system/df", {"type": "volume"})
        volumes = {
            one["Name"]: int((one.get("UsageData") or {}).get("Size") or 0) for one in usage["Volumes"] or ()
        }
        return {
            one["Id"]: sizes[one["Id"]]
            + sum(max(0, volumes.get(mount.get("Name", ""), 0)) for mount in one["Mounts"] or ())
            for one in found
        }
