"""What manifests say: names of a repository's own packages, and what it depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.environment.project import (
    Ecosystem,
    dependencies_digest,
    is_dependency_list,
    is_foreign,
    read_project_names,
)
from support.environment.golden import Files, write_tree

POM = b"""<project><modelVersion>4.0.0</modelVersion>
  <parent><groupId>org.acme</groupId><artifactId>parent</artifactId><version>1</version></parent>
  <artifactId>anvil-core</artifactId>
  <dependencies><dependency><groupId>org.junit</groupId><artifactId>junit</artifactId></dependency></dependencies>
</project>"""


@pytest.mark.parametrize(
    ("files", "ecosystem", "names"),
    [
        ({"pyproject.toml": b'[project]\nname = "Acme_Anvil.core"\n'}, Ecosystem.PYTHON, {"acme-anvil-core"}),
        ({"pyproject.toml": b'[tool.poetry]\nname = "anvil"\n'}, Ecosystem.PYTHON, {"anvil"}),
        ({"setup.py": b"setup(\n    name='anvil',\n    version=1)\n"}, Ecosystem.PYTHON, {"anvil"}),
        ({"setup.cfg": b"[metadata]\nname = anvil\n"}, Ecosystem.PYTHON, {"anvil"}),
        (
            {"package.json": b'{"name": "root"}', "packages/a/package.json": b'{"name": "@acme/a"}'},
            Ecosystem.NPM,
            {"root", "@acme/a"},
        ),
        (
            {"go.mod": b"// comment\nmodule example.org/acme/anvil/v2\n"},
            Ecosystem.GO,
            {"example.org/acme/anvil/v2"},
        ),
        ({"crates/a/Cargo.toml": b'[package]\nname = "anvil-a"\n'}, Ecosystem.CARGO, {"anvil-a"}),
        ({"core/pom.xml": POM}, Ecosystem.MAVEN, {"org.acme:anvil-core"}),
    ],
)
def test_name_of_a_package_is_read(
    tmp_path: Path, files: Files, ecosystem: Ecosystem, names: set[str]
) -> None:
    assert read_project_names(write_tree(tmp_path, files)) == {ecosystem: frozenset(names)}


def test_packages_of_examples_tests_and_others_are_not_its_own(tmp_path: Path) -> None:
    files = {
        f"{folder}/package.json": b'{"name": "lodash"}'
        for folder in ("tests/fixtures", "examples/a", "vendor/x")
    }
    assert (
        read_project_names(
            write_tree(tmp_path, {**files, "web/node_modules/x/package.json": b'{"name": "x"}'})
        )
        == {}
    )


@pytest.mark.parametrize(
    "name", ["pyproject.toml", "package.json", "Cargo.toml", "pom.xml", "go.mod", "setup.py"]
)
@pytest.mark.parametrize("content", [b"", b"\xff\xfe\0", b"[" * 20_000, b'{"name": 1}', b"name = ["])
def test_manifest_that_cannot_be_read_names_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    assert read_project_names(write_tree(tmp_path, {name: content})) == {}


def test_names_of_both_trees_are_read(tmp_path: Path) -> None:
    trees = [write_tree(tmp_path / name, {"go.mod": f"module {name}\n".encode()}) for name in ("old", "new")]
    assert read_project_names(*trees) == {Ecosystem.GO: frozenset({"old", "new"})}


def test_digest_of_dependencies_is_of_lock_files_and_of_manifests_without_them(tmp_path: Path) -> None:
    def digest(number: int, files: Files) -> str:
        return dependencies_digest(write_tree(tmp_path / str(number), files))

    locked = {"package.json": b"{}", "package-lock.json": b"{}", "a.js": b"1"}
    assert digest(0, locked) == digest(1, {**locked, "package.json": b'{"version": 2}', "a.js": b"2"})
    assert digest(0, locked) != digest(2, {**locked, "package-lock.json": b"{ }"})
    assert digest(3, {"setup.py": b"1"}) != digest(4, {"setup.py": b"2"})
    assert digest(5, {"node_modules/x/package-lock.json": b"{}", "README": b"1"}) == ""


def test_lists_of_dependencies_and_copies_of_others_are_known_by_their_names() -> None:
    assert all(map(is_dependency_list, [b"go.sum", b"a/b/package.json", b"dev-requirements.txt", b"pom.xml"]))
    assert not any(map(is_dependency_list, [b"requirements.py", b"src/locks.go", b"package.json.md"]))
    assert is_foreign(b"a/vendor/b.go")
    assert not is_foreign(b"a/vendor.go")
