"""The container engine of the ``image`` commands."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from codetaste.console.streams import notify
from codetaste.errors import ConfigError
from codetaste.sandbox.docker.engine import AUTO, DOCKER, PODMAN, connect_engine

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from codetaste.sandbox.docker.engine import ContainerEngine


@asynccontextmanager
async def open_engine(kind: str, socket: Path | None) -> AsyncIterator[ContainerEngine]:
    """Connect to the engine that the options of a command name.

    Raises:
        ConfigError: there is no such kind of engine.
        SandboxMissing: no engine answers.
    """
    if kind not in {AUTO, DOCKER, PODMAN}:
        raise ConfigError(f"--engine {kind}: it is one of {AUTO}, {DOCKER}, {PODMAN}")
    async with connect_engine(kind, socket) as engine:
        notify(f"{engine.kind} {engine.version} at {engine.socket}")
        yield engine
