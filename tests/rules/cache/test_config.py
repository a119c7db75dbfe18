"""``[rules] cache``: the folder of the match cache, its size, or no cache."""

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


@pytest.mark.heavy
def test_match_cache_is_stored_in_configured_folder(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree, warnings = make_tree({"a.py": "foo(1)\n"}), list[str]()
    configured, default = tmp_path / "configured", tmp_path / "xdg"
    monkeypatch.setenv("OPENGREP_BIN", str(engine.source_file))
    for config in (RulesConfig(cache="off"), RulesConfig(cache=configured)):
        assert scan(config, tree, warnings).count("foo") == 1
        assert configured.exists() == (config.cache == configured)
    monkeypatch.setenv("XDG_CACHE_HOME", str(default))
    assert scan(RulesConfig(), tree, warnings).count("foo") == 1
    assert [*(default / "codetaste" / "matches").glob("*/entries/*")]
    assert warnings == []


def test_cache_path_of_a_file_gives_one_warning(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENGREP_BIN", str(engine.source_file))
    tree, warnings, place = make_tree({"a.py": "foo(1)\n"}), list[str](), tmp_path / "file"
    place.write_text("")
    assert scan(RulesConfig(cache=place), tree, warnings).count("foo") == 1
    (warning,) = warnings
    assert warning.startswith(f"the cache of rule matches in {place} cannot be used: ")


def test_engine_and_cache_paths_are_relative_to_the_config(tmp_path: Path) -> None:
    model = {"id": "m", "provider": "scripted", "model": "a.py:b", "price": {"input": 0, "output": 0}}
    raw = {"run": {"name": "r"}, "models": [model], "rules": {"opengrep": "bin/grep", "cache": "matches"}}
    config = Config.model_validate({**raw, "benchmark": {"path": "quickstart"}})
    rules = resolve_config(config, tmp_path).rules()
    assert (rules.opengrep, rules.cache) == (tmp_path / "bin" / "grep", tmp_path / "matches")


def test_cache_size_is_parsed() -> None:
    assert RulesConfig.model_validate({"cache": "off", "cache_size": "64MiB"}).cache_size == 64 * 1024**2
    assert RulesConfig.model_validate({"cache": "here"}).cache == Path("here")
    with pytest.raises(ValidationError, match="is not a size"):
        RulesConfig.model_validate({"cache_size": "0"})


def test_former_name_of_the_time_limit_is_accepted() -> None:
    assert RulesConfig.model_validate({"scan_limit": "4s"}).scan_timeout == 4
