"""What a check of an image's tools says, in a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from codetaste.environment.base_image.check import (
    CheckedTool,
    ToolCheck,
    ToolState,
    check_tools,
    describe_differences,
    format_tools,
)
from codetaste.sandbox.base import Sandbox, SandboxSpec
from codetaste.sandbox.local.sandbox import bubblewrap_provider

pytestmark = pytest.mark.anyio


@pytest.fixture
async def sandbox(tmp_path: Path, bubblewrap: Path, anyio_backend: str) -> AsyncIterator[Sandbox]:
    async with bubblewrap_provider(tmp_path / "sandboxes").open(SandboxSpec("test")) as opened:
        yield opened


async def test_each_state_of_a_tool_has_its_own_result(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.environment.base_image.check.CHECK_S", 5.0)
    noted: list[CheckedTool] = []
    checks = [
        ToolCheck("same", "echo 1.2.3", "1.2.3"),
        ToolCheck("within", "echo more; echo 1.2.3; echo", "1.2"),
        ToolCheck("any", '[ -z "$(ls -A)" ] && echo x', ""),
        ToolCheck("other", "echo 1.20.0", "1.2"),
        ToolCheck("gone", "no-such-program --version", "1"),
        ToolCheck("optional", "exit 127", "8.0", needed=False),
        ToolCheck("broken", "echo 1.0; echo first >&2; echo 'no \033[31mlibrary' >&2; false | cat", "1.0"),
        ToolCheck("hangs", "sleep 600", ""),
    ]
    tools = await check_tools(sandbox, checks, noted.append)
    assert noted == list(tools)
    states = {tool.tool: (tool.state, tool.found, tool.sound) for tool in tools}
    assert states == {
        "same": (ToolState.OK, "1.2.3", True),
        "within": (ToolState.OK, "1.2.3", True),
        "any": (ToolState.OK, "x", True),
        "other": (ToolState.DIFFERS, "1.20.0", True),
        "gone": (ToolState.MISSING, "", False),
        "optional": (ToolState.MISSING, "", True),
        "broken": (ToolState.BROKEN, "", False),
        "hangs": (ToolState.BROKEN, "", False),
    }
    details = {tool.tool: tool.detail for tool in tools if tool.detail}
    assert details["hangs"] == "no end within 5 s"
    assert details["broken"].startswith("its check ended with 1: no ")
    assert "\033" not in details["broken"]
    assert describe_differences(tools) == (
        "other 1.20.0 instead of 1.2, gone missing, optional missing, broken broken, hangs broken"
    )
    table = format_tools(tools)
    assert len(table) == len(checks)
    assert table[3].split() == ["other", "1.20.0", "1.2", "differs"]
    assert table[5].endswith("missing (not needed)")
