"""What tests of agents share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.sandbox.base import SandboxProvider
from codetaste.sandbox.containment.engine import BUBBLEWRAP, probe_engines
from codetaste.sandbox.local.sandbox import bubblewrap_provider


@pytest.fixture
def local(tmp_path: Path, require: Callable[..., None]) -> SandboxProvider:
    """Boxes on this machine."""
    require("bwrap", ok=any(each.kind == BUBBLEWRAP and each.works for each in probe_engines()))
    return bubblewrap_provider(tmp_path / "boxes")
