"""The golden state of the tests."""

from __future__ import annotations

import pytest

from codetaste.environment.leak_search.golden import GoldenTraces, golden_traces
from support.environment.golden import BASE, COMMIT, GOLDEN, write_tree


@pytest.fixture(scope="session")
def golden(tmp_path_factory: pytest.TempPathFactory) -> GoldenTraces:
    folder = tmp_path_factory.mktemp("golden")
    return golden_traces(write_tree(folder / "base", BASE), write_tree(folder / "golden", GOLDEN), COMMIT)
