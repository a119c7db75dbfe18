"""``[rules] cache``: where matches are kept, or that they are not."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from pydantic import ValidationError

from codetaste.rules.config import RulesConfig
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import ScanResult
from codetaste.run.config import Config
from codetaste.run.resolve import resolve_config
from codetaste.run.services import open_scanner
from support.rules.scan_cases import MakeTree, rule

FOO = rule("foo", pattern="foo(...)")


def scan(config: RulesConfig, tree: Path, warnings: list[str]) -> ScanResult:
    async def main() -> ScanResult:
        scanner, _ = await open_scanner(config, "", warnings.append)
        assert isinstance(scanner, FullScanner) == (config.cache == "off")
        return await scanner.scan([FOO], tree)

    return anyio.run(main)


def test_match_cache_is_stored_in_configured_folder(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, warnings = make_tree({"a.py": "foo(1)\n"}), list[str]()
    kept, usual = tmp_path / "kept", tmp_path / "xdg"
    monkeypatch.setenv("OPENGREP_BIN", str(engine.source_file))
    for config in (RulesConfig(cache="off"), RulesConfig(cache=kept)):
        assert scan(config, tree, warnings).count("foo") == 1
        assert kept.exists() == (config.cache == kept)
    monkeypatch.setenv("XDG_CACHE_HOME", str(usual))
    assert scan(RulesConfig(), tree, warnings).count("foo") == 1
    assert [*(usual / "codetaste" / "matches").glob("*/entries/*")]
    assert warnings == []


def test_a_cache_that_is_no_folder_costs_one_warning(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENGREP_BIN", str(engine.source_file))
    tree, warnings, place = make_tree({"a.py": "foo(1)\n"}), list[str](), tmp_path / "file"
    place.write_text("")
    assert scan(RulesConfig(cache=place), tree, warnings).count("foo") == 1
    (warning,) = warnings
    assert warning.startswith(f"the cache of rule matches in {place} cannot be used: ")


def test_paths_of_the_engine_and_its_cache_are_relative_to_the_config(tmp_path: Path) -> None:
    model = {"id": "m", "provider": "scripted", "model": "a.py:b", "price": {"input": 0, "output": 0}}
    raw = {"run": {"name": "r"}, "models": [model], "rules": {"opengrep": "bin/grep", "cache": "kept"}}
    config = Config.model_validate({**raw, "benchmark": {"path": "quickstart"}})
    rules = resolve_config(config, tmp_path).rules()
    assert (rules.opengrep, rules.cache) == (tmp_path / "bin" / "grep", tmp_path / "kept")


def test_sizes_are_sizes() -> None:
    assert RulesConfig.model_validate({"cache": "off", "cache_size": "64MiB"}).cache_size == 64 * 1024**2
    assert RulesConfig.model_validate({"cache": "here"}).cache == Path("here")
    with pytest.raises(ValidationError, match="is not a size"):
        RulesConfig.model_validate({"cache_size": "0"})


def test_the_former_name_of_the_time_limit_is_read() -> None:
    assert RulesConfig.model_validate({"scan_limit": "4s"}).scan_timeout == 4
