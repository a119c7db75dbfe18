"""What verifications need: sandboxes in bubblewrap, and one folder a module for what they fetch."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from codetaste.sandbox.config import SandboxConfig
from codetaste.swe_refactor.verify.settings import VerifyContext, make_verify_context
from support.sandbox.providers import open_bubblewrap


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with what is fetched: the dependencies of the project, and JaCoCo."""
    return tmp_path_factory.mktemp("fetched")


@pytest.fixture
async def context(tmp_path: Path, shared: Path, require: Callable[..., None]) -> AsyncIterator[VerifyContext]:
    require("mvn")
    require("javac")
    async with open_bubblewrap(tmp_path / "sandboxes") as sandboxes:
        yield await make_verify_context(
            sandboxes, SandboxConfig(), image="", folder=shared / "project", cache=shared / "cache"
        )
