"""Control groups of killed runs are removed, those of live runs are not."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from codetaste.sandbox.containment import resources as cgroup

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_control_group_of_live_run_is_not_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended_process = subprocess.Popen(["true"])
    ended_process.wait()
    (tmp_path / "cgroup.procs").touch()
    live_group = tmp_path / f"codetaste-{os.getppid()}-0"
    dead_group = tmp_path / f"codetaste-{ended_process.pid}-0"
    live_group.mkdir()
    dead_group.mkdir()
    monkeypatch.setattr(cgroup, "_HIERARCHIES", (tmp_path,))
    cgroup._hierarchy.cache_clear()
    try:
        cgroup._hierarchy()
    finally:
        cgroup._hierarchy.cache_clear()
    assert live_group.is_dir()
    assert not dead_group.exists()
