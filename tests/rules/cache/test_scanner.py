"""Whatever happens to a tree and to the cache, an incremental scan says what a full one says."""

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
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep, RuleEngineLimits
from codetaste.rules.rule import Rule
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.model import Scanner, ScanResult
from support.rules.scan_cases import MakeTree, rule

pytestmark = pytest.mark.anyio

FOO = rule("foo", pattern="foo(...)")
RULES = [
    FOO,
    rule("again", pattern="foo(...)"),
    rule("dedupe", pattern="foo(..., $X, ...)"),
    rule("told", message="m $X", pattern="foo(..., $X, ...)"),
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
mishaps = st.sampled_from(["", "", "", "flip", "cut", "lose", "new process", "tiny"])
steps = st.lists(st.tuples(st.lists(edits, max_size=3), subsets, mishaps), min_size=2, max_size=4)


def edit(tree: Path, what: str, name: str, how: object) -> None:
    """Do one edit, if it can be done."""
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


def spoil(cache: Path, how: str, chance: random.Random) -> None:
    """Damage one file of the cache."""
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.name != "secret")
    if not files:
        return
    path = chance.choice(files)
    data = bytearray(path.read_bytes())
    if how == "flip" and data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(data)
    elif how == "cut":
        path.write_bytes(data[: chance.randrange(len(data) + 1)])
    elif how == "lose":
        path.unlink()


async def walk(
    engine: RuleEngine, place: Path, history: Sequence[tuple[list[tuple[str, str, object]], list[Rule], str]],
    *, chance: random.Random
) -> None:  # fmt: skip
    """Live through ``history``, and compare after each step."""
    tree, cache = place / "tree", place / "cache"
    tree.mkdir()
    for name in PATHS[:6]:
        edit(tree, "write", name, CONTENTS[0])
    grep = OpenGrep(engine)

    def scanner(size: int = 1 << 30) -> Scanner:
        return IncrementalScanner(grep, MatchStore(cache, engine_cache_name(engine), size=size), "sub/d.ts\n")

    ours, full = scanner(), FullScanner(grep, "sub/d.ts\n")
    for changes, rules, mishap in history:
        for what, name, how in changes:
            edit(tree, what, name, how)
        spoil(cache, mishap, chance)
        if mishap in {"new process", "tiny"}:
            ours = scanner(2000 if mishap == "tiny" else 1 << 30)
        wanted, *got = await gather([partial(each.scan, rules, tree) for each in (full, ours, scanner())])
        assert got == [wanted, wanted]
    assert await scanner().scan(rules, tree) == await ours.scan(rules, tree) == wanted


def check(engine: RuleEngine, history: list[object], seed: int) -> None:
    with tempfile.TemporaryDirectory() as place:
        anyio.run(partial(walk, chance=random.Random(seed)), engine, Path(place), history)


anything = given(history=steps, seed=st.integers(0, 1 << 32))
quiet = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]


@settings(max_examples=6, suppress_health_check=quiet)
@anything
def test_it_says_what_a_full_scan_says(engine: RuleEngine, history: list[object], seed: int) -> None:
    check(engine, history, seed)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=300, suppress_health_check=quiet)
@anything
def test_it_says_what_a_full_scan_says_hundreds_of_times(
    engine: RuleEngine, history: list[object], seed: int
) -> None:
    check(engine, history, seed)


class Counting:
    """An engine that remembers what it was asked."""

    def __init__(self, engine: RuleEngine) -> None:
        self._grep = OpenGrep(engine)
        self.asked: list[tuple[list[str], list[str]]] = []

    async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        self.asked.append(([each.id for each in rules], list(files)))
        return await self._grep.match(rules, tree, files)


def counting(engine: RuleEngine, cache: Path) -> tuple[Counting, IncrementalScanner]:
    grep = Counting(engine)
    return grep, IncrementalScanner(grep, MatchStore(cache, engine_cache_name(engine)))


BAR, SOURCE = rule("bar", pattern="bar(...)"), rule("source", pattern="source()")


async def test_both_trees_cost_one_pass_over_the_union_of_their_files(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    base = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1)\n", "c.py": "foo(2)\n"})
    golden = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1, 2)\n", "d.py": "foo(2)\n"})
    grep, scanner = counting(engine, tmp_path / "cache")
    both = await gather([partial(scanner.scan, [FOO], tree) for tree in (base, golden)])
    assert [found.count("foo") for found in both] == [2, 2]
    assert sorted(file for _, files in grep.asked for file in files) == [
        "a.py",
        "b.py",
        "b.py",
        "c.py",
        "d.py",
    ]


async def test_cache_repeated_rules_are_free_and_other_sets_are_scanned(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n", "b.py": "bar(1)\n", "c.txt": "foo(1)\n"})
    grep, scanner = counting(engine, tmp_path / "cache")
    await scanner.scan([FOO, BAR], tree)
    renamed = Rule("other", FOO.languages, {**FOO.body, "id": "other", "metadata": {"nr": 1}})
    grep.asked.clear()
    assert (await scanner.scan([renamed, BAR], tree)).count("other") == 1
    assert (await scanner.scan([BAR, FOO], tree)).count("bar") == 1
    assert grep.asked == []
    found = await scanner.scan([BAR, SOURCE], tree)
    assert found == await FullScanner(OpenGrep(engine)).scan([BAR, SOURCE], tree)
    assert grep.asked == [(["bar", "source"], ["a.py", "b.py", "c.txt"])]


async def test_cache_file_changed_during_scan_is_not_stored(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})

    class Slow(Counting):
        async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
            text = (tree / "a.py").read_text()
            (tree / "a.py").write_text("bar(1)\n")
            found = await super().match(rules, tree, files)
            (tree / "a.py").write_text(text)
            return found

    store = MatchStore(tmp_path / "cache", engine_cache_name(engine))
    assert (await IncrementalScanner(Slow(engine), store).scan([FOO], tree)).count("foo") == 0
    _, scanner = counting(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO], tree)).count("foo") == 1


async def test_rule_hanging_on_file_is_reported_and_the_others_are_counted(
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


async def test_an_answer_that_is_not_whole_is_not_remembered(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})
    scanner = IncrementalScanner(
        OpenGrep(RuleEngine(Path("/nowhere"), "1", "0", Path("/nowhere"), "config", is_core=True)),
        MatchStore(tmp_path / "cache", engine_cache_name(engine)),
    )
    with pytest.raises(Exception, match="cannot be run"):
        await scanner.scan([FOO], tree)
    grep, scanner = counting(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO, *RULES[-3:]], tree)).partial
    assert (await scanner.scan([FOO, *RULES[-3:]], tree)).partial
    assert [rules for rules, _ in grep.asked] == [["foo", "broken", "too-new", "klingon"]]
    grep, scanner = counting(engine, tmp_path / "cache")
    assert (await scanner.scan([FOO], tree)).count("foo") == 1
    assert grep.asked == []


def test_nothing_is_left_of_a_cache_but_the_cache(
    engine: RuleEngine, make_tree: MakeTree, tmp_path: Path
) -> None:
    tree = make_tree({"a.py": "foo(1)\n"})
    _, scanner = counting(engine, tmp_path / "cache")
    anyio.run(scanner.scan, [FOO], tree)
    assert not [path for path in tmp_path.rglob(".*") if path.is_file()]
    shutil.rmtree(tmp_path / "cache")
    assert anyio.run(scanner.scan, [FOO], tree).count("foo") == 1
