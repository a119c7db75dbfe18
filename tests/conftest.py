"""What every test may use."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

REQUIRE_ALL = os.environ.get("CODETASTE_REQUIRE") == "all"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _missing(reason: str) -> None:
    if REQUIRE_ALL:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
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
