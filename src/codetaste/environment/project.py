"""What the manifests of a repository say: the names of its packages, and what it depends on."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.files import read_regular_file
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

LOCK_FILES = frozenset({
    b"package-lock.json", b"npm-shrinkwrap.json", b"yarn.lock", b"pnpm-lock.yaml", b"bun.lock", b"bun.lockb",
    b"go.sum", b"go.work.sum", b"Cargo.lock", b"poetry.lock", b"Pipfile.lock", b"uv.lock", b"pdm.lock",
    b"composer.lock", b"Gemfile.lock", b"gradle.lockfile", b"packages.lock.json", b"mix.lock", b"flake.lock",
    b"pubspec.lock", b"Podfile.lock", b"deno.lock", b"conan.lock",
})  # fmt: skip
"""Names of files that list what is installed, version by version."""
MANIFESTS = frozenset({
    b"package.json", b"go.mod", b"Cargo.toml", b"pyproject.toml", b"setup.py", b"setup.cfg", b"Pipfile",
    b"pom.xml", b"build.gradle", b"build.gradle.kts", b"libs.versions.toml", b"composer.json", b"Gemfile",
    b"mix.exs", b"pubspec.yaml", b"Directory.Packages.props", b"environment.yml",
})  # fmt: skip
"""Names of files that list what a project depends on."""
_REQUIREMENTS = re.compile(rb"(?:.*[-_.])?(?:requirements|constraints)(?:[-_.].*)?\.(?:txt|in|pip)")
FOREIGN_FOLDERS = frozenset({
    b"node_modules", b"bower_components", b"jspm_packages", b"vendor", b"vendored", b"_vendor", b"deps",
    b"third_party", b"third-party", b"thirdparty", b"3rdparty", b"external", b"externals",
})  # fmt: skip
"""Names of folders with the code of other projects."""
_SAMPLE_FOLDERS = frozenset({
    b"test", b"tests", b"testing", b"testdata", b"test-data", b"test_data", b"__tests__", b"spec", b"e2e",
    b"fixture", b"fixtures", b"__fixtures__", b"example", b"examples", b"_examples", b"sample", b"samples",
    b"template", b"templates", b"docs", b"doc", b"benchmark", b"benchmarks", b"playground",
})  # fmt: skip
"""Names of folders whose manifests are examples: a package in them may have the name of a dependency."""
_SETUP_NAME = re.compile(
    r"""(?:^|[\s(,])name\s*=\s*(?:'([\w.-]+)'|"([\w.-]+)"|([\w.-]+)\s*$)""", re.MULTILINE
)
_MAX_BYTES = 1024**2
_MAX_NAMES = 2000


class Ecosystem(StrEnum):
    """Whose packages a name is one of."""

    PYTHON = "python"
    NPM = "npm"
    GO = "go"
    CARGO = "cargo"
    MAVEN = "maven"


ProjectNames = dict[Ecosystem, frozenset[str]]
"""Names of a repository's own packages. Python's are normalised; Maven's are ``group:artifact``."""


def is_dependency_list(path: bytes) -> bool:
    """Whether the file lists dependencies: such lines are in every image in which these are installed."""
    name = path.rpartition(b"/")[2]
    return name in LOCK_FILES or name in MANIFESTS or _REQUIREMENTS.fullmatch(name.lower()) is not None


def is_foreign(path: bytes) -> bool:
    """Whether the file is a copy of another project's."""
    return not FOREIGN_FOLDERS.isdisjoint(path.split(b"/")[:-1])


def dependencies_digest(tree: Path) -> str:
    """Return a digest (hex) of the lock files of ``tree``, of its manifests if it has none; "" without both.

    Environments whose digests are equal install the same packages. Blocking.

    Raises:
        OSError: the tree cannot be read.
    """
    files = {path: os.path.join(os.fsencode(tree), path) for path, _ in walk_tree(os.fsencode(tree))}  # noqa: PTH118
    listing = {
        path: where for path, where in files.items() if not is_foreign(path) and is_dependency_list(path)
    }
    locks = {path for path in listing if path.rpartition(b"/")[2] in LOCK_FILES}
    digest = hashlib.sha256()
    for path in sorted(locks or listing):
        if os.path.islink(listing[path]):  # noqa: PTH114 - bytes
            continue
        with open(listing[path], "rb") as file:  # noqa: PTH123 - bytes
            digest.update(b"%d %s %s\n" % (len(path), path, hashlib.file_digest(file, "sha256").digest()))
    return digest.hexdigest() if listing else ""


def read_project_names(*trees: Path) -> ProjectNames:
    """Return the names of the packages that the manifests of ``trees`` define; blocking.

    A manifest that cannot be parsed defines none. Those in folders of examples, tests and other projects are
    left out.

    Raises:
        OSError: a tree cannot be read.
    """
    found: defaultdict[Ecosystem, set[str]] = defaultdict(set)
    for tree in trees:
        for path, content in _manifests(tree):
            ecosystem, read = _READERS[path.rpartition(b"/")[2]]
            if len(found[ecosystem]) < _MAX_NAMES:
                found[ecosystem].update(read(content))
    return {ecosystem: frozenset(names) for ecosystem, names in found.items() if names}


def _manifests(tree: Path) -> Iterator[tuple[bytes, str]]:
    for path, item in walk_tree(os.fsencode(tree)):
        folders = path.split(b"/")
        name = folders.pop()
        own = (_SAMPLE_FOLDERS | FOREIGN_FOLDERS).isdisjoint(folders)
        if own and name in _READERS and item.is_file(follow_symlinks=False):
            yield path, _read_text(tree / os.fsdecode(path))


def _read_text(path: Path) -> str:
    try:
        return read_regular_file(path, _MAX_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""


def normalise(name: str) -> str:
    """Return a Python package's name in the form in which equal names are equal."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _pyproject(content: str) -> Iterator[str]:
    data = _toml(content)
    project, poetry = _table(data, "project"), _table(data, "tool", "poetry")
    flit = _table(data, "tool", "flit", "metadata")
    for name in (project.get("name"), poetry.get("name"), flit.get("dist-name"), flit.get("module")):
        if isinstance(name, str) and name:
            yield normalise(name)


def _setup_file(content: str) -> Iterator[str]:
    found = _SETUP_NAME.search(content)
    if found:
        yield normalise("".join(filter(None, found.groups())))


def _package_json(content: str) -> Iterator[str]:
    try:
        name = _table(json.loads(content)).get("name")
    except (ValueError, RecursionError):
        return
    if isinstance(name, str) and name:
        yield name


def _go_mod(content: str) -> Iterator[str]:
    found = re.search(r'^module\s+"?([^\s"]+)', content, re.MULTILINE)
    if found:
        yield found[1]


def _cargo_toml(content: str) -> Iterator[str]:
    name = _table(_toml(content), "package").get("name")
    if isinstance(name, str) and name:
        yield name


def _pom(content: str) -> Iterator[str]:
    # Not an XML parser: a pom's own coordinates come before those of its dependencies and its build.
    head = re.split(r"<(?:dependencies|dependencyManagement|build|profiles|modules)\b", content, maxsplit=1)[
        0
    ]
    parent = re.search(r"<parent>.*?</parent>", head, re.DOTALL)
    own = head.replace(parent[0], "") if parent else head
    artifact = re.search(r"<artifactId>\s*([\w.-]+)\s*</artifactId>", own)
    group = re.search(r"<groupId>\s*([\w.-]+)\s*</groupId>", own)
    if group is None and parent:
        group = re.search(r"<groupId>\s*([\w.-]+)\s*</groupId>", parent[0])
    if artifact and group:
        yield f"{group[1]}:{artifact[1]}"


def _toml(content: str) -> Mapping[str, object]:
    import tomli  # noqa: PLC0415 - only here

    try:
        return tomli.loads(content)
    except (tomli.TOMLDecodeError, RecursionError):
        return {}


def _table(data: object, *keys: str) -> Mapping[str, object]:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


_READERS: Mapping[bytes, tuple[Ecosystem, Callable[[str], Iterator[str]]]] = {
    b"pyproject.toml": (Ecosystem.PYTHON, _pyproject),
    b"setup.py": (Ecosystem.PYTHON, _setup_file),
    b"setup.cfg": (Ecosystem.PYTHON, _setup_file),
    b"package.json": (Ecosystem.NPM, _package_json),
    b"go.mod": (Ecosystem.GO, _go_mod),
    b"Cargo.toml": (Ecosystem.CARGO, _cargo_toml),
    b"pom.xml": (Ecosystem.MAVEN, _pom),
}
