"""Control groups of runs side by side: what killed runs have left is cleared, and nothing else."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from codetaste.sandbox.containment import resources as cgroup

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_group_of_a_run_that_lives_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    (tmp_path / "cgroup.procs").touch()
    living, left = tmp_path / f"codetaste-{os.getppid()}-0", tmp_path / f"codetaste-{ended.pid}-0"
    living.mkdir()
    left.mkdir()
    monkeypatch.setattr(cgroup, "_HIERARCHIES", (tmp_path,))
    cgroup._hierarchy.cache_clear()
    try:
        cgroup._hierarchy()
    finally:
        cgroup._hierarchy.cache_clear()
    assert living.is_dir()
    assert not left.exists()
