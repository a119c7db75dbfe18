"""Fixtures of the harness's tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.sandbox.base import SandboxProvider
from codetaste.sandbox.local.sandbox import bubblewrap_provider


@pytest.fixture
def provider(tmp_path: Path, bubblewrap: Path) -> SandboxProvider:
    """Local sandboxes in bubblewrap."""
    return bubblewrap_provider(tmp_path / "sandboxes")
