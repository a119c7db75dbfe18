"""Cleaning removes what is built of the repository itself, and leaves what it depends on."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest

from codetaste.environment.images.clean import clean_sandbox
from codetaste.environment.project import Ecosystem
from support.environment.golden import write_tree
from support.environment.root_folder import RootFolder, make_root

pytestmark = pytest.mark.anyio
NAMES = {
    Ecosystem.PYTHON: frozenset({"acme-anvil"}),
    Ecosystem.NPM: frozenset({"@acme/anvil"}),
    Ecosystem.GO: frozenset({"example.org/acme/anvil"}),
    Ecosystem.MAVEN: frozenset({"org.acme:anvil-core"}),
}
SITE = "home/agent/venv/lib/python3.11/site-packages"
CACHE = "home/agent/.npm/_cacache"


@pytest.fixture
def root(tmp_path: Path, bubblewrap: Path) -> RootFolder:
    return make_root(tmp_path / "root", bubblewrap)


def distribution(name: str, module: str, origin: str) -> dict[str, bytes]:
    info = f"{name}-1.0.dist-info"
    record = f"{module}/__init__.py,sha256=x,1\n../../../bin/{module},,\n{info}/RECORD,,\n"
    return {
        f"{SITE}/{module}/__init__.py": b"",
        f"{SITE}/{module}/__pycache__/__init__.cpython-311.pyc": b"",
        f"home/agent/venv/bin/{module}": b"",
        f"{SITE}/{info}/RECORD": record.encode(),
        f"{SITE}/{info}/METADATA": b"",
        **({f"{SITE}/{info}/direct_url.json": json.dumps({"url": origin}).encode()} if origin else {}),
    }


def npm_entry(name: str) -> dict[str, bytes]:
    digest = hashlib.sha512(name.encode()).digest()
    entry = {"key": f"make-fetch-happen:request-cache:https://registry.invalid/{name}/-/x-1"}
    text = json.dumps(
        {**entry, "integrity": f"sha512-{base64.b64encode(digest).decode()}"}, separators=(",", ":")
    )
    found = digest.hex()
    return {
        f"{CACHE}/index-v5/{found[:2]}/{found[2:4]}/{found[4:]}": f"hash\t{text}\n".encode(),
        f"{CACHE}/content-v2/sha512/{found[:2]}/{found[2:4]}/{found[4:]}": b"archive",
    }


OWN = {
    **distribution("acme_anvil", "anvil", "file:///testbed"),
    **distribution("renamed", "renamed", "file:///testbed/dist/x.whl"),
    f"{SITE}/acme_anvil-1.0-py3.11.egg/anvil2.py": b"",
    "home/agent/.cache/pip/wheels/a/b/Acme.Anvil-1.0-py3-none-any.whl": b"",
    "home/agent/.cache/go-build/aa/own-d": b"go object example.org/acme/anvil/codegen",
    "home/agent/go/bin/anvil": b"\x7fELF example.org/acme/anvil",
    "opt/target/.rustc_info.json": b"{}",
    "opt/target/debug/libanvil.rlib": b"",
    "root/.m2/repository/org/acme/anvil-core/1.0/anvil-core-1.0.jar": b"",
    "root/.gradle/caches/build-cache-1/abc": b"",
    **npm_entry("@acme/anvil"),
    "tmp/notes.txt": b"",
    "var/log/apt/term.log.1.gz": b"",
    "home/agent/.bash_history": b"",
    "home/agent/.claude/projects/x.jsonl": b"",
    "home/agent/.claude.json": b"",
    "testbed/new.py": b"",
    "output/plan.md": b"",
}
OTHERS = {
    **distribution("requests", "requests", ""),
    **distribution("fork", "fork", "https://index.invalid/fork"),
    "home/agent/.cache/pip/wheels/a/b/requests-2.0-py3-none-any.whl": b"",
    "home/agent/.cache/go-build/aa/other-d": b"go object example.org/acme/tongs",
    "home/agent/go/pkg/mod/example.org/acme/tongs@v1.0.0/x.go": b"",
    "root/.m2/repository/org/acme/tongs/1.0/tongs-1.0.jar": b"",
    "root/.gradle/caches/modules-2/files-2.1/org.junit/junit/x.jar": b"",
    **npm_entry("tongs"),
    "var/log/dpkg.log": b"",
    "home/agent/.profile": b"",
}


def files_of(root: RootFolder) -> set[str]:
    return {path.relative_to(root.folder).as_posix() for path in root.folder.rglob("*") if path.is_file()}


async def test_own_packages_go_and_dependencies_stay(root: RootFolder) -> None:
    write_tree(root.folder, {**OWN, **OTHERS, "var/log/dpkg.log": b"installed\n"})
    removed = await clean_sandbox(root.sandbox, NAMES)
    assert files_of(root) == set(OTHERS)
    assert (root.folder / "var/log/dpkg.log").read_bytes() == b""
    assert f"python package: /{SITE}/acme_anvil-1.0.dist-info" in removed.splitlines()
    assert not (root.folder / SITE / "anvil").exists()
    assert (root.folder / "testbed").is_dir()


async def test_only_traces_go_after_the_setup_of_the_base(root: RootFolder) -> None:
    write_tree(root.folder, {**OWN, **OTHERS})
    await clean_sandbox(root.sandbox, NAMES, empty=("/output", "/nowhere"), only_traces=True)
    gone = ("output/", "var/log/apt", "home/agent/.claude", "home/agent/.bash_history")
    assert files_of(root) == {path for path in {*OWN, *OTHERS} if not path.startswith(gone)}


async def test_nothing_is_needed_in_the_image(root: RootFolder) -> None:
    assert await clean_sandbox(root.sandbox, {}) == ""
