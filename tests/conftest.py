"""What every test may use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import dockerd

REQUIRE_ALL = os.environ.get("CODETASTE_REQUIRE") == "all"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _missing(reason: str) -> None:
    if REQUIRE_ALL:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def require() -> Callable[..., None]:
    """Fail (under CODETASTE_REQUIRE=all) or skip when a program is missing; ``ok`` overrides the look-up."""

    def check(program: str, *, ok: bool | None = None, reason: str = "") -> None:
        found = shutil.which(program) is not None if ok is None else ok
        if not found:
            _missing(reason or f"{program} is not on this machine")

    return check


@pytest.fixture
def published_data() -> Path:
    """The published benchmark data that CODETASTE_DATA names."""
    folder = os.environ.get("CODETASTE_DATA", "")
    if not folder or not Path(folder).is_dir():
        _missing("CODETASTE_DATA does not name a folder with the published benchmark data")
    return Path(folder)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[dockerd.DockerEngine]:
    """A Docker engine that is ours alone, started once."""
    missing = dockerd.missing_programs()
    if os.geteuid() != 0 or missing:
        _missing(f"a Docker engine of the tests' own needs root and {', '.join(missing) or 'nothing else'}")
    with dockerd.running_engine() as engine:
        yield engine
