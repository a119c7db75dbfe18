"""Cache keys: they cover everything that decides a match, and recent time stamps are not trusted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codetaste.rules.cache.keys import FileKeys, engine_cache_name, rule_key
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.rule import Rule
from support.rules.scan_cases import MakeTree, rule, scan


def key(file_keys: FileKeys, tree: Path, name: str = "a.py") -> bytes:
    return file_keys.read(tree, [name])[name].key


def advance_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Advance the clock by a minute."""
    later_ns = time.time_ns() + 60 * 10**9
    monkeypatch.setattr("codetaste.rules.cache.keys.time.time_ns", lambda: later_ns)


def test_file_key_covers_path_content_and_executable_bit(make_tree: MakeTree) -> None:
    tree, other = make_tree({"a.py": "x", "b.py": "x", "c.py": "xx"}), make_tree({"a.py": "x"})
    keys = {name: state.key for name, state in FileKeys().read(tree, ["a.py", "b.py", "c.py"]).items()}
    assert len(set(keys.values())) == 3
    assert key(FileKeys(), other) == keys["a.py"]
    (other / "a.py").chmod(0o755)
    assert key(FileKeys(), other) != keys["a.py"]


def test_old_unchanged_file_is_not_read_again(make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree({"a.py": "one"})
    advance_clock(monkeypatch)
    file_keys = FileKeys()
    before = file_keys.read(tree, ["a.py"])
    monkeypatch.setattr("codetaste.rules.cache.keys.os.open", None)
    assert file_keys.read(tree, ["a.py"]) == before


@pytest.mark.parametrize("is_old", [True, False])
def test_edit_with_same_size_and_time_is_detected(
    make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch, is_old: bool
) -> None:
    tree = make_tree({"a.py": "one"})
    if is_old:
        advance_clock(monkeypatch)
    file_keys = FileKeys()
    for number in range(50):
        first = file_keys.read(tree, ["a.py"])
        state = (tree / "a.py").stat()
        (tree / "a.py").write_text(f"{number:03d}")
        os.utime(tree / "a.py", ns=(state.st_atime_ns, state.st_mtime_ns))
        if not is_old:
            assert file_keys.unchanged(tree, first) == {}
        assert key(file_keys, tree) != first["a.py"].key
        if is_old:
            break  # a file edited just now is recent, whatever the clock says


def test_unreadable_file_has_no_key(make_tree: MakeTree) -> None:
    tree = make_tree({"a.py": "x"})
    (tree / "link.py").symlink_to("a.py")
    os.mkfifo(tree / "pipe.py")
    file_keys = FileKeys()
    states = file_keys.read(tree, ["a.py", "gone.py", "link.py"])
    assert [*states] == ["a.py"]
    (tree / "a.py").unlink()
    assert file_keys.unchanged(tree, states) == {}


def test_rule_key_covers_what_the_engine_reads(engine: RuleEngine, make_tree: MakeTree) -> None:
    one = rule("one", pattern="foo(..., $X, ...)")

    def same(**changes: object) -> bool:
        return rule_key(Rule("two", one.languages, {**one.body, "id": "two", **changes})) == rule_key(one)

    assert same()
    assert same(metadata={"nr_legacy_patterns": 3, "deep": [1, {"x": None}]})
    assert rule_key(Rule("one", one.languages, dict(reversed(one.body.items())))) == rule_key(one)
    for changes in ({"message": "m $X"}, {"severity": "ERROR"}, {"paths": {}}, {"options": {}}, {"fix": ""}):
        assert not same(**changes)
    # The message is part of the key because it decides whether this is one match or two.
    tree = make_tree({"a.py": "foo(1, 2)\n"})
    with_message = rule("with-message", pattern="foo(..., $X, ...)", message="m $X")
    found = scan(engine, [one, with_message], tree)
    assert (found.count("one"), found.count("with-message")) == (1, 2)


def test_only_engine_with_hash_has_a_cache_name(engine: RuleEngine) -> None:
    assert engine.sha256 in engine_cache_name(engine)
    assert not engine_cache_name(RuleEngine(engine.source_file, "1", "0", engine.source_file, "PATH"))
