"""Output trees, ours and published ones, read into records; nothing bad in one folder loses another."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.benchmark.catalog import Benchmark
    from codetaste.evaluation.records import Records


def read_outputs(root: Path, benchmark: Benchmark | None = None) -> Records:
    """Read the trials below ``root``: ``runs/<name>``, ``outputs`` or one ``<track>/<mode>`` of it.

    Blocks: call it in a thread.

    Args:
        root: a run of ours, or a folder in the published layout.
        benchmark: says language and category, which instances there are, and has their baselines.

    Raises:
        ConfigError: there is no such folder, or nothing in it has the published layout.
    """
    raise NotImplementedError
