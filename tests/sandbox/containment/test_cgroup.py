"""Sandboxes of root get control groups; those of killed runs are removed, those of live runs are not."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

import pytest

from codetaste.sandbox.containment import resources as cgroup

if TYPE_CHECKING:
    from pathlib import Path

needs_groups = pytest.mark.skipif(
    os.geteuid() != 0 or cgroup._hierarchy() is None,
    reason="only root with a writable hierarchy makes groups",
)


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


@needs_groups
def test_sandboxes_that_start_at_once_all_get_a_group() -> None:
    at_once = 4
    for _ in range(50):
        cgroup._hierarchy.cache_clear()
        barrier = Barrier(at_once)

        def make(processes: int, barrier: Barrier = barrier) -> Path | None:
            barrier.wait()
            return cgroup.make_cgroup(processes)

        with ThreadPoolExecutor(at_once) as threads:
            groups = list(threads.map(make, range(100, 100 + at_once)))
        limits = [(group / "pids.max").read_text().strip() if group else None for group in groups]
        for group in groups:
            cgroup.remove_cgroup(group)
        assert limits == ["100", "101", "102", "103"]
        assert not any(group and group.exists() for group in groups)


@needs_groups
def test_group_of_an_earlier_process_with_the_same_id_is_passed_over() -> None:
    first = cgroup.make_cgroup(100)
    assert first is not None
    prefix, _, number = first.name.rpartition("-")
    taken = first.with_name(f"{prefix}-{int(number) + 1}")
    taken.mkdir()
    second = cgroup.make_cgroup(100)
    for group in (first, taken, second):
        cgroup.remove_cgroup(group)
    assert second is not None
    assert second not in {first, taken}
