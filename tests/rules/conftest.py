"""The real engine, and small trees to scan with it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import anyio
import pytest

from codetaste.errors import ToolMissing
from codetaste.rules.engine.install import RuleEngine, find_rule_engine
from support.rules.scan_cases import MakeTree


@pytest.fixture(scope="session")
def engine() -> RuleEngine:
    """The engine that a user of this machine would get."""
    try:
        return anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Write files below a new folder; a name may hold bytes that are not UTF-8 (surrogateescape)."""
    made = 0

    def make(files: Mapping[str, str | bytes]) -> Path:
        nonlocal made
        made += 1
        tree = tmp_path / f"tree-{made}"
        tree.mkdir()
        for name, content in files.items():
            path = tree / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return tree

    return make
