"""The real client against the loopback GitHub."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from codetaste.mining.github.client import GitHubClient, open_github
from codetaste.mining.github.config import GitHubConfig
from codetaste.mining.github.pacer import WallClock
from support.mining.github.server import TOKEN, Hub, serving
from support.mining.github.world import World

VARIABLE = "CODETASTE_TEST_GITHUB_TOKEN"


@dataclass
class Session:
    """A client, the server that it talks to, and the lines that it reported."""

    hub: Hub
    client: GitHubClient
    reports: list[str]


@asynccontextmanager
async def connected(hub: Hub, folder: Path, token: str = TOKEN, **config: Any) -> AsyncIterator[Session]:
    """Open a client of ``hub``; its cache is a file in ``folder``."""
    reports: list[str] = []
    settings = {"api_url": hub.url, "token_env": VARIABLE, "timeout": 20.0, **config}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(VARIABLE, token)
        async with open_github(
            GitHubConfig.model_validate(settings),
            folder / "github.sqlite",
            reports.append,
            clock=WallClock(hub.clock.now, hub.clock.sleep),
            rng=random.Random(1),
        ) as client:
            yield Session(hub, client, reports)


@asynccontextmanager
async def github(world: World, folder: Path, token: str = TOKEN, **config: Any) -> AsyncIterator[Session]:
    """Serve ``world`` and open a client."""
    async with serving(world) as hub, connected(hub, folder, token, **config) as session:
        yield session
