"""Fixtures of the tests of case studies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from support.case_study.studied_run import StudiedRun, make_studied_run
from support.flows.tiny_benchmark import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Bench:
    """A benchmark of one instance."""
    require("git")
    made = Bench(tmp_path_factory.mktemp("tiny"))
    made.add()
    return made


@pytest.fixture
def studied(tmp_path: Path, bench: Bench, bubblewrap: Path) -> StudiedRun:
    """A run with two trials, and the config of an honest examiner."""
    return make_studied_run(tmp_path, bench, bench.folder / "cache")
