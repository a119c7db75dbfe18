"""What tests of agents share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.sandbox.box import Boxes
from codetaste.sandbox.engine import BUBBLEWRAP, probe
from codetaste.sandbox.local_box import local_boxes


@pytest.fixture(scope="session")
def agents_cache(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Path:
    """Where agents are installed, each once in a session, however many processes run it."""
    require("bwrap", ok=any(each.kind == BUBBLEWRAP and each.works for each in probe()))
    base = tmp_path_factory.getbasetemp()
    return (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "agents-cache"


@pytest.fixture
def local(tmp_path: Path, require: Callable[..., None]) -> Boxes:
    """Boxes on this machine."""
    require("bwrap", ok=any(each.kind == BUBBLEWRAP and each.works for each in probe()))
    return local_boxes(tmp_path / "boxes")
