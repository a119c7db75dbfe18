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


@pytest.mark.parametrize(("user", "unused"), [("README.md", {"new.py"}), ("Makefile", set())])
def test_prose_uses_no_file(tmp_path: Path, user: str, unused: set[str]) -> None:
    changes: Files = {"new.py": "def f(): ...\n", user: "See: new.py\n"}
    assert unused_files(tmp_path, {"a.py": "import os\n"}, changes) == unused


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


RAILS: Files = {"config/application.rb": "x\n"}
DJANGO: Files = {"manage.py": "x\n"}
NEXT: Files = {"web/next.config.mjs": "x\n"}
CARGO: Files = {"Cargo.toml": "x\n"}


@pytest.mark.parametrize(
    ("base", "path"),
    [
        (RAILS, "app/models/fresh.rb"),
        (RAILS, "db/migrate/20240101_fresh.rb"),
        (DJANGO, "shop/migrations/0002_fresh.py"),
        (DJANGO, "shop/management/commands/fresh.py"),
        (DJANGO, "shop/apps.py"),
        (NEXT, "web/pages/blog/fresh.tsx"),
        (NEXT, "web/src/app/blog/[id]/page.tsx"),
        (CARGO, "src/bin/fresh.rs"),
        (CARGO, "crates/a/examples/fresh.rs"),
        (CARGO, "crates/a/benches/fresh.rs"),
        (CARGO, "crates/a/build.rs"),
    ],
)
def test_file_that_a_framework_finds_is_used_where_r_has_the_framework(
    tmp_path: Path, base: Files, path: str
) -> None:
    assert unused_files(tmp_path / "with", base, {path: "x = 1\n"}) == set()
    assert unused_files(tmp_path / "without", {}, {path: "x = 1\n"}) == {path}


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("pkg/tests/helpers.py", "x = 1\n"),
        ("spec/support/fresh.rb", "x = 1\n"),
        ("crates/a/tests/fresh.rs", "fn f() {}\n"),
        ("src/FreshTestCase.java", "class FreshTestCase {}\n"),
        ("src/TestFresh.java", "class TestFresh {}\n"),
        ("web/fresh.stories.tsx", "x = 1\n"),
        ("src/Fresh.java", "@Component\npublic class Fresh {}\n"),
        ("src/Fresh.kt", "@javax.persistence.Entity(name = 1)\nclass Fresh\n"),
        ("src/Checks.java", "class Checks {\n  @Test\n  void f() {}\n}\n"),
        ("tools/fresh.py", "if __name__ == '__main__':\n    x()\n"),
        ("main.py", "x = 1\n"),
    ],
)
def test_file_that_says_that_it_is_run_is_used(tmp_path: Path, path: str, content: str) -> None:
    assert unused_files(tmp_path, {}, {path: content}) == set()


@pytest.mark.parametrize("path", ["app/deep/main.py", "app/build.py", "app/fresh/mod.rs", "app/lib.rs"])
def test_name_of_a_program_in_any_folder_is_not_enough(tmp_path: Path, path: str) -> None:
    assert unused_files(tmp_path, {}, {path: "x\n"}) == {path}


def test_module_of_rust_is_used_if_its_folder_is_named(tmp_path: Path) -> None:
    base: Files = {"src/lib.rs": "mod fresh;\n"}
    assert unused_files(tmp_path, base, {"src/fresh/mod.rs": "x\n", "src/other/mod.rs": "x\n"}) == {
        "src/other/mod.rs"
    }


@pytest.mark.parametrize(
    ("path", "content", "user"),
    [
        ("a/fresh.go", "package a\n\nvar (\n\tErrFresh = 1\n)\n", "return a.ErrFresh"),
        ("a/fresh.go", "package a\n\nconst (\n\tOne = iota\n\n\tTwo\n)\n", "f(Two)"),
        ("a/fresh.go", "package a\n\nfunc (f *Form) Fresh() {}\n", "x.Fresh()"),
        ("a/Fresh.kt", "internal fun makeIt() = 1\n", "makeIt()"),
        ("a/Fresh.kt", "suspend fun <T : Any> List<T>.makeIt() = 1\n", "x.makeIt()"),
        ("a/Fresh.kt", "fun interface Maker { fun make() }\n", "Maker { }"),
        ("a/Fresh.kt", "enum class Kind { ONE }\n", "Kind.ONE"),
        ("a/Fresh.kt", "const val MOST = 1\n", "MOST"),
        ("a/Fresh.scala", "sealed trait Shape\ncase class Round(r: Int)\n", "Round(1)"),
        ("a/Fresh.java", "public @interface Marked {}\n", "@Marked"),
        ("a/Fresh.java", "public non-sealed class Round {}\n", "new Round()"),
        ("a/fresh_page.rb", "module A\n  class FreshPage < Page\n  end\nend\n", "FreshPage.new"),
        ("a/html_page.rb", "class A::HTMLPage\nend\n", "HTMLPage.new"),
    ],
)
def test_file_is_used_by_what_it_declares(tmp_path: Path, path: str, content: str, user: str) -> None:
    suffix = path.rpartition(".")[2]
    assert unused_files(tmp_path / "used", {f"old.{suffix}": user}, {path: content}) == set()
    others = {f"old.{suffix}": "A.keep(List, class, Form)\n"}
    assert unused_files(tmp_path / "unused", others, {path: content}) == (
        set() if "*Form" in content else {path}
    )
