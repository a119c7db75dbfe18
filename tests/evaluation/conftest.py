"""The real rule engine, and a scanner with a match cache that tests share."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from codetaste.errors import ToolMissing
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine, find_rule_engine
from codetaste.rules.engine.opengrep import OpenGrep


@pytest.fixture(scope="session")
def engine() -> RuleEngine:
    """The rule engine that codetaste finds on this machine."""
    try:
        return anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def matches_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("matches")


@pytest.fixture
def scanner(engine: RuleEngine, matches_cache: Path) -> IncrementalScanner:
    """A scanner whose match cache is shared by all tests of evaluation."""
    return IncrementalScanner(OpenGrep(engine), MatchStore(matches_cache, engine_cache_name(engine)))
