"""A local sandbox has no root."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.errors import SandboxMissing
from codetaste.sandbox.base import Privileges, SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("privileges", [Privileges.SYSTEM, Privileges.SUDO])
async def test_bubblewrap_refuses_privileges_in_one_line(
    bubblewrap: Path, tmp_path: Path, privileges: Privileges
) -> None:
    assert bubblewrap
    with pytest.raises(
        SandboxMissing, match=rf"test: .* {privileges}, which need a container engine: .*docker"
    ):
        async with bubblewrap_provider(tmp_path / "sandboxes").open(
            SandboxSpec("test", privileges=privileges)
        ):
            pass
    assert list((tmp_path / "sandboxes").iterdir()) == []
