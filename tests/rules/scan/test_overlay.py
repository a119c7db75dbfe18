"""Scans of R∘X̂ in two folders equal those of one folder and reuse the cached answers for R."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from anyio import run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.rules.cache.keys import FileKeys, engine_cache_name
from codetaste.rules.cache.scanner import IncrementalScanner
from codetaste.rules.cache.store import MatchStore
from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.engine.opengrep import OpenGrep
from codetaste.rules.rule import Rule
from codetaste.rules.scan.full import FullScanner
from codetaste.rules.scan.ignore import IgnoreFile
from codetaste.rules.scan.model import ScanResult
from codetaste.rules.scan.targets import select_targets
from codetaste.source.tree.overlay import OverlayTree
from support.rules.scan_cases import MakeTree, rule

pytestmark = pytest.mark.anyio

RULES = [
    rule("foo", pattern="foo(...)"),
    rule("bar", pattern="bar($X)"),
    rule("def", pattern="def $F(): ..."),
]
FILES = {
    "a.py": "foo(1)\n",
    "b.py": "bar(2)\n",
    "sub/c.py": "foo(3)\nbar(3)\n",
    "sub/d.py": "def f():\n    pass\n",
    "node/e.py": "foo(5)\n",
}


class RecordingEngine:
    """An engine that records the folder and files of each call."""

    def __init__(self, engine: RuleEngine) -> None:
        self._grep = OpenGrep(engine)
        self.calls: list[tuple[Path, list[str]]] = []

    async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        self.calls.append((tree, list(files)))
        return await self._grep.match(rules, tree, files)


def make_overlay(tmp_path: Path, base: Path, changed: dict[str, str], gone: set[str]) -> OverlayTree:
    over = Path(tempfile.mkdtemp(dir=tmp_path)) / "over"
    over.mkdir()
    for name, content in changed.items():
        (over / name).parent.mkdir(parents=True, exist_ok=True)
        (over / name).write_text(content)
    return OverlayTree(base, over, frozenset(changed), frozenset(gone))


def copy_as_one_folder(tree: OverlayTree, into: Path) -> Path:
    shutil.copytree(tree.base, into)
    for name in tree.deleted:
        (into / name).unlink()
    shutil.copytree(tree.overlay, into, dirs_exist_ok=True)
    return into


def test_files_are_selected_like_from_one_folder(tmp_path: Path, make_tree: MakeTree) -> None:
    base = make_tree({**FILES, ".gitignore": "*.py\n"})
    tree = make_overlay(
        tmp_path,
        base,
        {"new/.gitignore": "*\n", "new/x.py": "", "a.py": "", "big": "x" * 1_000_001},
        {"b.py"},
    )
    ignore = IgnoreFile("node/\n")
    assert select_targets(tree, ignore) == select_targets(copy_as_one_folder(tree, tmp_path / "one"), ignore)
    assert "new/x.py" in select_targets(tree, ignore).files


def test_only_patched_files_are_read_again(tmp_path: Path, make_tree: MakeTree) -> None:
    base = make_tree(FILES)
    tree = make_overlay(tmp_path, base, {"a.py": "foo(9)\n"}, {"b.py"})
    file_keys = FileKeys()
    before = file_keys.read(base, sorted(FILES))
    states = file_keys.read(tree, ["a.py", "node/e.py", "sub/c.py"])
    assert states["a.py"].key != before["a.py"].key
    assert states["sub/c.py"] == before["sub/c.py"]
    assert file_keys.unchanged(tree, states) == states
    (tree.overlay / "a.py").write_text("foo(10)\n")
    assert set(file_keys.unchanged(tree, states)) == {"node/e.py", "sub/c.py"}
    assert file_keys.read(base, sorted(FILES)) == before


async def test_overlay_scan_calls_engine_only_for_patched_files(
    engine: RuleEngine, tmp_path: Path, make_tree: MakeTree
) -> None:
    recording = RecordingEngine(engine)
    scanner = IncrementalScanner(recording, MatchStore(tmp_path / "cache", engine_cache_name(engine)))
    base = make_tree(FILES)
    await scanner.scan(RULES, base)
    tree = make_overlay(tmp_path, base, {"a.py": "bar(1)\n", "sub/new.py": "foo(2)\n"}, {"b.py"})
    recording.calls.clear()
    found = await scanner.scan(RULES, tree)
    assert recording.calls == [(tree.overlay, ["a.py", "sub/new.py"])]
    assert found == await FullScanner(OpenGrep(engine)).scan(
        RULES, copy_as_one_folder(tree, tmp_path / "one")
    )


async def test_overlay_scan_without_cache_uses_one_call_and_cleans_up(
    engine: RuleEngine, tmp_path: Path, make_tree: MakeTree
) -> None:
    recording = RecordingEngine(engine)
    tree = make_overlay(tmp_path, make_tree(FILES), {"a.py": "bar(1)\n"}, {"sub/d.py"})
    expected = await FullScanner(OpenGrep(engine)).scan(RULES, copy_as_one_folder(tree, tmp_path / "one"))
    for scanner in (
        FullScanner(recording),
        IncrementalScanner(recording, MatchStore(tmp_path / "cache", engine_cache_name(engine))),
    ):
        recording.calls.clear()
        assert await scanner.scan(RULES, tree) == expected
        ((folder, files),) = recording.calls
        assert files == ["a.py", "b.py", "node/e.py", "sub/c.py"]
        assert not folder.exists()
    assert [path.name for path in tree.overlay.parent.iterdir()] == ["over"]


contents = st.sampled_from(["foo(1)\n", "bar(1)\nfoo(2)\n", "def f():\n    pass\n", "def def (\n", ""])
names = st.sampled_from([*FILES, "sub/new.py", "x.py", "node/y.py", ".semgrepignore"])
patches = st.tuples(
    st.dictionaries(names, contents, max_size=4), st.sets(st.sampled_from(sorted(FILES)), max_size=3)
)


histories = given(st.lists(patches, min_size=2, max_size=2))


@settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
@histories
def test_overlay_scans_of_successive_patches_equal_scans_of_one_folder(
    engine: RuleEngine, history: list[tuple[dict[str, str], set[str]]]
) -> None:
    check(engine, history)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@histories
def test_overlay_scans_of_many_successive_patches_equal_scans_of_one_folder(
    engine: RuleEngine, history: list[tuple[dict[str, str], set[str]]]
) -> None:
    check(engine, history)


def check(engine: RuleEngine, history: list[tuple[dict[str, str], set[str]]]) -> None:
    async def main(place: Path) -> None:
        base = place / "base"
        grep = OpenGrep(engine)
        scanner = IncrementalScanner(
            grep, MatchStore(place / "cache", engine_cache_name(engine)), "node/y.py\n"
        )
        full = FullScanner(grep, "node/y.py\n")
        for number, (changed, gone) in enumerate(history):
            tree = make_overlay(place, base, changed, gone - changed.keys())
            one = copy_as_one_folder(tree, place / f"one-{number}")
            assert await scanner.scan(RULES, tree) == await full.scan(RULES, one)

    with tempfile.TemporaryDirectory() as folder:
        for name, content in FILES.items():
            path = Path(folder) / "base" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        run(main, Path(folder))
