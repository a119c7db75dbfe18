"""The status of a run whose session an error has ended says which, until the run continues."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codetaste.errors import ConfigError
from codetaste.orchestration.session import open_session
from codetaste.report.status.json import status_to_json
from codetaste.report.status.status import RunWatcher
from codetaste.report.status.text import render_status


def test_status_names_the_error_that_ended_the_session(tmp_path: Path) -> None:
    async def fail() -> None:
        async with open_session(tmp_path):
            raise ConfigError("clones: no such folder")

    async def succeed() -> None:
        async with open_session(tmp_path) as session:
            await session.run()

    with pytest.raises(ConfigError):
        anyio.run(fail)
    status = RunWatcher(tmp_path).poll()
    assert status_to_json(status)["error"] == "clones: no such folder"
    assert "error       clones: no such folder" in render_status(status)
    anyio.run(succeed)
    status = RunWatcher(tmp_path).poll()
    assert status_to_json(status)["error"] is None
    assert "clones" not in render_status(status)
