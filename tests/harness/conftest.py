"""What tests of agents share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from codetaste.sandbox.box import Boxes
from codetaste.sandbox.engine import BUBBLEWRAP, probe
from codetaste.sandbox.local_box import local_boxes


@pytest.fixture
def local(tmp_path: Path, require: Callable[..., None]) -> Boxes:
    """Boxes on this machine."""
    require("bwrap", ok=any(each.kind == BUBBLEWRAP and each.works for each in probe()))
    return local_boxes(tmp_path / "boxes")
