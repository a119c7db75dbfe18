"""Incremental scans equal full scans after any changes of the tree and damage to the cache."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.core.concurrency import gather
from codetaste.rules.cache.keys import engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.split import cacheable_answers
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import Scanner, ScanProblem, ScanProblemKind, ScanResult
from support.rules.scan_cases import MakeTree, rule

pytestmark = pytest.mark.anyio

FOO = rule("foo", pattern="foo(...)")
RULES = [
    FOO,
    rule("again", pattern="foo(...)"),
    rule("dedupe", pattern="foo(..., $X, ...)"),
    rule("with-message", message="m $X", pattern="foo(..., $X, ...)"),
    rule("bar", pattern="bar($X)"),
    rule("some", pattern="foo(...)", paths={"include": ["sub/**", "*.txt"]}),
    rule("others", pattern="foo(...)", paths={"exclude": ["sub", "a.py"]}),
    rule("regex", languages=("regex",), pattern_regex=r"foo\(\d"),
    rule("regex-some", languages=("regex",), pattern_regex="bar", paths={"exclude": ["*.py"]}),
    rule("generic", languages=("generic",), pattern="foo(...)"),
    rule("generic-txt", languages=("generic",), pattern="bar", paths={"include": ["*.txt", "script"]}),
    rule("js", languages=("javascript",), pattern="foo(...)"),
    rule("js-ts", languages=("javascript", "typescript"), pattern="bar(...)"),
    rule("go", languages=("go",), pattern="foo(...)"),
    rule(
        "flow",
        mode="taint",
        pattern_sources=[{"pattern": "source()"}],
        pattern_sinks=[{"pattern": "foo(...)"}],
    ),
    rule("broken", pattern="def foo((:"),
    rule("too-new", pattern="foo(...)", min_version="99.0.0"),
    rule("klingon", languages=("klingon",), pattern="foo"),
]
CONTENTS = [
    b"foo(1)\nbar(2)\n",
    b"foo(1, 2)\nbar(3)\n",
    b"foo(3)\nbar(2)\n",
    b"def f():\n    x = source()\n    foo(x)  # nosemgrep\n",
    b"foo(1)\ndef def (\n",
    b"package p\nfunc f() { foo(1) }\n",
    b"let a = foo(1); let = = ;((\n",
    b"#!/usr/bin/env python3\nfoo(1)\n",
    b"\xff\xfe foo(\xe4)\n",
    b"foo(1)\0\1\2",
    b"",
    b"bar(1)\n",
    b"foo(1)\n" * 2600,
    b"foo(1)\n" * 150_000,
]
PATHS = ["a.py", "sub/a.py", "sub/b.py", "c.js", "sub/d.ts", "e.go", "f.txt", "script", "x y/\xfc.py"]
PATHS += ["caf\udce9.py", "new\nline.py"]
paths, contents = st.sampled_from(PATHS), st.sampled_from(CONTENTS)
IGNORES = ["", "*.py\n", "sub/\n", "!a.py\nscript\n"]
edits = st.one_of(
    st.tuples(st.just("write"), paths, contents),
    st.tuples(st.just("sneak"), paths, st.just(b"")),
    st.tuples(st.just("rename"), paths, paths),
    st.tuples(st.just("delete"), paths, st.just("")),
    st.tuples(st.just("mode"), paths, st.sampled_from([0o644, 0o755])),
    st.tuples(st.just("link"), paths, paths),
    st.tuples(st.just("ignore"), st.sampled_from([".gitignore", ".semgrepignore"]), st.sampled_from(IGNORES)),
)
subsets = st.lists(st.sampled_from(RULES), min_size=1, max_size=7, unique_by=lambda each: each.id)
damages = st.sampled_from(["", "", "", "flip", "cut", "lose", "new process", "tiny"])
steps = st.lists(st.tuples(st.lists(edits, max_size=3), subsets, damages), min_size=2, max_size=4)


def edit(tree: Path, what: str, name: str, how: object) -> None:
    """Apply one edit if it is possible."""
    path = tree / name
    if what == "sneak":
        if path.is_file() and not path.is_symlink():
            state, text = path.stat(), path.read_bytes()
            path.write_bytes(text.replace(b"foo", b"bar") if b"foo" in text else text.replace(b"bar", b"foo"))
            os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        return
    if what == "mode":
        if path.is_file() and not path.is_symlink():
            assert isinstance(how, int)
            path.chmod(how)
        return
    old = path.read_bytes() if path.is_file() else None
    if what != "rename" or old is not None:
        path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    if what in {"write", "ignore"}:
        assert isinstance(how, bytes | str)
        path.write_bytes(how.encode() if isinstance(how, str) else how)
    elif what == "link":
        path.symlink_to(tree / str(how))
    elif what == "rename" and old is not None:
        edit(tree, "write", str(how), old)


def damage(cache: Path, how: str, rng: random.Random) -> None:
    """Damage one file of the cache."""
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.name != "secret")
    if not files:
        return
    path = rng.choice(files)
    data = bytearray(path.read_bytes())
    if how == "flip" and data:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[: rng.randrange(len(data) + 1)])
    elif how == "lose":
        path.unlink()


async def compare_scans(
    engine: RuleEngine, place: Path, history: Sequence[tuple[list[tuple[str, str, object]], list[Rule], str]],
    *, rng: random.Random
) -> None:  # fmt: skip
    """Apply the steps of ``history`` and compare the scans after each."""
    tree, cache = place / "tree", place / "cache"
    tree.mkdir()
    for name in PATHS[:6]:
        edit(tree, "write", name, CONTENTS[0])
    grep = OpenGrep(engine)

    def scanner(size: int = 1 << 30) -> Scanner:
        return IncrementalScanner(grep, MatchStore(cache, engine_cache_name(engine), size=size), "sub/d.ts\n")

    incremental, full = scanner(), FullScanner(grep, "sub/d.ts\n")
    for changes, rules, damage_kind in history:
        for what, name, how in changes:
            edit(tree, what, name, how)
        damage(cache, damage_kind, rng)
        if damage_kind in {"new process", "tiny"}:
            incremental = scanner(2000 if damage_kind == "tiny" else 1 << 30)
        scanners = (full, incremental, scanner())
        expected, *found = await gather([partial(each.scan, rules, tree) for each in scanners])
        assert found == [expected, expected]
    assert await scanner().scan(rules, tree) == await incremental.scan(rules, tree) == expected


def check(engine: RuleEngine, history: list[object], seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        anyio.run(partial(compare_scans, rng=random.Random(seed)), engine, Path(place), history)


any_history = given(history=steps, seed=st.integers(0, 1 << 32))
suppressed_checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@pytest.mark.heavy
@settings(max_examples=6, suppress_health_check=suppressed_checks)
@any_history
def test_incremental_scan_equals_full_scan(engine: RuleEngine, history: list[object], seed: int) -> None:
    check(engine, history, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=300, suppress_health_check=suppressed_checks)
@any_history
def test_incremental_scan_equals_full_scan_in_hundreds_of_histories(
    engine: RuleEngine, history: list[object], seed: int
) -> None:
    check(engine, history, seed)


class RecordingEngine:
    """An engine that records its calls."""

    def __init__(self, engine: RuleEngine) -> None:
        self._grep = OpenGrep(engine)
        self.calls: list[tuple[list[str], list[str]]] = []

    async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        self.calls.append(([each.id for each in rules], list(files)))
        return await self._grep.match(rules, tree, files)


def recording_scanner(engine: RuleEngine, cache: Path) -> tuple[RecordingEngine, IncrementalScanner]:
    grep = RecordingEngine(engine)
    return grep, IncrementalScanner(grep, MatchStore(cache, engine_cache_name(engine)))


BAR, SOURCE = rule("bar", pattern="bar(...)"), rule("source", pattern="source()")


async def test_two_trees_are_scanned_in_one_pass_over_the_union_of_their_files(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    base = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1)\n", "c.py": "foo(2)\n"})
    golden = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1, 2)\n", "d.py": "foo(2)\n"})
    grep, scanner = recording_scanner(engine, tmp_path / "cache")
    both = await gather([partial(scanner.scan, [FOO], tree) for tree in (base, golden)])
    assert [found.count("foo") for found in both] == [2, 2]
    assert sorted(file for _, files in grep.calls for file in files) == [
        "a.py",
        "b.py",
        "b.py",
        "c.py",
        "d.py",
    ]


async def test_cached_rules_need_no_engine_call_and_other_sets_are_scanned(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1)\n", "c.txt": "foo(1)\n"})
    grep, scanner = recording_scanner(engine, tmp_path / "cache")
    await scanner.scan([FOO, BAR], tree)
    renamed = Rule("other", FOO.languages, {**FOO.body, "id": "other", "metadata": {"nr": 1}})
    grep.calls.clear()
    assert (await scanner.scan([renamed, BAR], tree)).count("other") == 1
    assert (await scanner.scan([BAR, FOO], tree)).count("bar") == 1
    assert grep.calls == []
    found = await scanner.scan([BAR, SOURCE], tree)
    assert found == await FullScanner(OpenGrep(engine)).scan([BAR, SOURCE], tree)
    assert grep.calls == [(["bar", "source"], ["a.py", "b.py", "c.txt"])]


async def test_answer_for_file_changed_during_scan_is_not_stored(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})

    class Slow(RecordingEngine):
        async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
            text = (tree / "a.py").read_text()
            (tree / "a.py").write_text("bar(1)\n")
            found = await super().match(rules, tree, files)
            (tree / "a.py").write_text(text)
            return found

    store = MatchStore(tmp_path / "cache", engine_cache_name(engine))
    assert (await IncrementalScanner(Slow(engine), store).scan([FOO], tree)).count("foo") == 0
    _, scanner = recording_scanner(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO], tree)).count("foo") == 1


@pytest.mark.heavy
async def test_rule_hanging_on_file_is_reported_and_other_rules_are_counted(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    statements = "".join(f"g{n % 7}(x{n})\n" for n in range(400))
    hang = rule("hang", pattern="\n...\n".join(f"$F{n}($X{n})" for n in range(6)))
    tree = make_tree({"slow.py": f"{statements}foo(1)\n", "quick.py": "foo(1)\n"})
    grep = OpenGrep(engine, limits=RuleEngineLimits(wall_s=6.0, pair_s=1.0))
    scanner = IncrementalScanner(grep, MatchStore(tmp_path / "cache", engine_cache_name(engine)))
    found = await scanner.scan([FOO, hang], tree)
    assert [(p.kind, p.rule_id, p.path) for p in found.problems] == [("timeout", "hang", "slow.py")]
    assert found.failures("hang")
    assert found.count("foo") == 2


async def test_incomplete_answer_is_not_stored(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})
    scanner = IncrementalScanner(
        OpenGrep(RuleEngine(Path("/nowhere"), "1", "0", Path("/nowhere"), "config", is_core=True)),
        MatchStore(tmp_path / "cache", engine_cache_name(engine)),
    )
    with pytest.raises(Exception, match="cannot be run"):
        await scanner.scan([FOO], tree)
    grep, scanner = recording_scanner(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO, *RULES[-3:]], tree)).partial
    assert (await scanner.scan([FOO, *RULES[-3:]], tree)).partial
    assert [rules for rules, _ in grep.calls] == [["foo", "broken", "too-new", "klingon"]]
    grep, scanner = recording_scanner(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO], tree)).count("foo") == 1
    assert grep.calls == []


def test_answers_for_files_with_time_limits_are_not_stored() -> None:
    problem = ScanProblem(ScanProblemKind.SYMBOLS, "any words", path="a.py")
    scan = ScanResult((), (problem,), frozenset({"a.py", "b.py"}))
    entry = cacheable_answers(scan, {"foo": b"rule"}, {"a.py": b"a", "b.py": b"b"})
    assert entry is not None
    assert set(entry.files) == {b"b"}


def test_scan_leaves_no_hidden_files_and_survives_a_deleted_cache(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})
    _, scanner = recording_scanner(engine, tmp_path / "cache")
    anyio.run(scanner.scan, [FOO], tree)
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
    shutil.rmtree(tmp_path / "cache")
    assert anyio.run(scanner.scan, [FOO], tree).count("foo") == 1
