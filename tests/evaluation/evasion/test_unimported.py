"""New files that nothing uses are found by one search of the tree, whatever names whatever."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from codetaste.evaluation.evasion import unimported
from codetaste.evaluation.evasion.unimported import ImportSearch
from codetaste.source.tree.overlay import OverlayTree
from support.evaluation.trees import Files, write_tree


def unused_files(folder: Path, base: Files, changes: Files) -> set[str]:
    tree = OverlayTree(
        write_tree(folder / "R", base), write_tree(folder / "X", changes), frozenset(changes), frozenset()
    )
    search = ImportSearch(tree, frozenset(changes.keys() - base.keys()), base.keys() | changes.keys())
    return {path for path in changes if search.is_unused(path)}


def chain(length: int) -> dict[str, str]:
    """Files each of which names the one before it and the one after it."""
    return {f"app/m{at}.py": f"import m{at - 1}, m{at + 1}\n" for at in range(length)}


@pytest.mark.parametrize("user", ["app/a.py", "app/old.py"])
def test_long_chain_is_used_if_its_first_file_is(tmp_path: Path, user: str) -> None:
    base: Files = {"app/old.py": "import m0\n"} if user == "app/old.py" else {}
    links = chain(2000)
    assert unused_files(tmp_path, base, {**links, user: "#!/usr/bin/python3\nimport m0\n"}) == set()


def test_chain_that_nothing_else_names_is_unused(tmp_path: Path) -> None:
    links = chain(2000)
    links["app/m1999.py"] = "import m0\n"
    assert unused_files(tmp_path, {"app/old.py": "import m\n"}, links) == links.keys()


def test_each_file_of_the_tree_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: Counter[Path] = Counter()

    def read(place: Path) -> bytes:
        reads[place] += 1
        return place.read_bytes()

    monkeypatch.setattr(unimported, "read_file", read)
    base = {f"lib/old{at}.py": "import os\n" for at in range(20)}
    assert len(unused_files(tmp_path, base, chain(20))) == 20
    assert len(reads) == 40
    assert set(reads.values()) == {1}


def test_file_that_the_patch_deletes_names_nothing(tmp_path: Path) -> None:
    base, overlay = write_tree(tmp_path / "R", {"a.py": "import new\n"}), write_tree(tmp_path / "X", NEW)
    tree = OverlayTree(base, overlay, frozenset(NEW), frozenset({"a.py"}))
    assert ImportSearch(tree, frozenset(NEW), {"a.py", "new.py"}).is_unused("new.py")


NEW: Files = {"new.py": "x = 1\n"}


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("web/my-file.js", "import './my-file.js'"),
        ("web/my-file.js", "import './x-my-file'"),
        ("web/file.js", "import './my-file'"),
        ("web/[id].js", "load('[id]')"),
    ],
)
def test_names_with_hyphens_and_brackets(tmp_path: Path, path: str, line: str) -> None:
    named = "x-my-file" not in line
    assert unused_files(tmp_path, {"web/a.js": line}, {path: "x\n"}) == (set() if named else {path})
