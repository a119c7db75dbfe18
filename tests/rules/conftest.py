"""Fixtures: the real rule engine and small trees."""

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
    """Return the engine that is found on this machine."""
    try:
        return anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture
def make_tree(tmp_path: Path) -> MakeTree:
    """Return a function that writes files below a new folder; names may be surrogateescaped."""
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
