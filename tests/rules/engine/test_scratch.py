"""Scratch folders of the engine: private, and removed after their process has ended."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from codetaste.rules.engine.opengrep import make_scratch_folder


def test_stale_scratch_folders_are_removed_live_and_young_stay(tmp_path: Path) -> None:
    ended = subprocess.Popen(["true"])
    ended.wait()
    old = {
        name: tmp_path / name
        for name in (f"codetaste-scan-{ended.pid}-a", f"codetaste-scan-{os.getpid()}-b", "unrelated")
    }
    young = tmp_path / f"codetaste-scan-{ended.pid}-young"
    for folder in (*old.values(), young):
        folder.mkdir()
        (folder / "rules.json").write_text("{}")
    for folder in old.values():
        os.utime(folder, (1, 1))
    made = make_scratch_folder(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [made.name, young.name, f"codetaste-scan-{os.getpid()}-b", "unrelated"]
    )
    assert made.stat().st_mode & 0o777 == 0o700
