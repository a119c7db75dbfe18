"""What decides a match is part of a key, and no time stamp is trusted that may lie."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from codetaste.rules.cache.keys import FileKeys, engine_cache_name, rule_key
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.rule import Rule
from support.rules.scan_cases import MakeTree, rule, scan


def key(memo: FileKeys, tree: Path, name: str = "a.py") -> bytes:
    return memo.read(tree, [name])[name].key


def settle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a minute go by."""
    later_ns = time.time_ns() + 60 * 10**9
    monkeypatch.setattr("codetaste.rules.cache.keys.time.time_ns", lambda: later_ns)


def test_a_key_is_of_path_content_and_leave_to_execute(make_tree: MakeTree) -> None:
    tree, other = make_tree({"a.py": "x", "b.py": "x", "c.py": "xx"}), make_tree({"a.py": "x"})
    keys = {name: state.key for name, state in FileKeys().read(tree, ["a.py", "b.py", "c.py"]).items()}
    assert len(set(keys.values())) == 3
    assert key(FileKeys(), other) == keys["a.py"]
    (other / "a.py").chmod(0o755)
    assert key(FileKeys(), other) != keys["a.py"]


def test_a_file_at_rest_is_not_read_again(make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree({"a.py": "one"})
    settle(monkeypatch)
    memo = FileKeys()
    before = memo.read(tree, ["a.py"])
    monkeypatch.setattr("codetaste.rules.cache.keys.os.open", None)
    assert memo.read(tree, ["a.py"]) == before


@pytest.mark.parametrize("at_rest", [True, False])
def test_an_edit_of_the_same_size_and_time_is_seen(
    make_tree: MakeTree, monkeypatch: pytest.MonkeyPatch, at_rest: bool
) -> None:
    tree = make_tree({"a.py": "one"})
    if at_rest:
        settle(monkeypatch)
    memo = FileKeys()
    for number in range(50):
        first = memo.read(tree, ["a.py"])
        state = (tree / "a.py").stat()
        (tree / "a.py").write_text(f"{number:03d}")
        os.utime(tree / "a.py", ns=(state.st_atime_ns, state.st_mtime_ns))
        if not at_rest:
            assert memo.unchanged(tree, first) == {}
        assert key(memo, tree) != first["a.py"].key
        if at_rest:
            break  # what was edited just now is not at rest, whatever the clock says


def test_what_cannot_be_read_has_no_key(make_tree: MakeTree) -> None:
    tree = make_tree({"a.py": "x"})
    (tree / "link.py").symlink_to("a.py")
    os.mkfifo(tree / "pipe.py")
    memo = FileKeys()
    states = memo.read(tree, ["a.py", "gone.py", "link.py"])
    assert [*states] == ["a.py"]
    (tree / "a.py").unlink()
    assert memo.unchanged(tree, states) == {}


def test_a_rule_is_what_the_engine_makes_of_it(engine: RuleEngine, make_tree: MakeTree) -> None:
    one = rule("one", pattern="foo(..., $X, ...)")

    def same(**changes: object) -> bool:
        return rule_key(Rule("two", one.languages, {**one.body, "id": "two", **changes})) == rule_key(one)

    assert same()
    assert same(metadata={"nr_legacy_patterns": 3, "deep": [1, {"x": None}]})
    assert rule_key(Rule("one", one.languages, dict(reversed(one.body.items())))) == rule_key(one)
    for changes in ({"message": "m $X"}, {"severity": "ERROR"}, {"paths": {}}, {"options": {}}, {"fix": ""}):
        assert not same(**changes)
    # Why the message is part of it: this is one match, or two.
    tree = make_tree({"a.py": "foo(1, 2)\n"})
    told = rule("told", pattern="foo(..., $X, ...)", message="m $X")
    found = scan(engine, [one, told], tree)
    assert (found.count("one"), found.count("told")) == (1, 2)


def test_only_an_engine_that_is_known_by_its_hash_has_a_name(engine: RuleEngine) -> None:
    assert engine.sha256 in engine_cache_name(engine)
    assert not engine_cache_name(RuleEngine(engine.source_file, "1", "0", engine.source_file, "PATH"))
