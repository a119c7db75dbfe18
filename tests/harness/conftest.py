"""What tests of agents share."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.sandbox.base import SandboxProvider
from codetaste.sandbox.local.sandbox import bubblewrap_provider


@pytest.fixture
def local(tmp_path: Path, bubblewrap: Path) -> SandboxProvider:
    """Boxes on this machine."""
    return bubblewrap_provider(tmp_path / "boxes")
