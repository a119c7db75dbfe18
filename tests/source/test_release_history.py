"""Releases of a package become commits of a repository, always the same ones."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from codetaste.errors import SourceError
from codetaste.source.release_history import PackageRelease, release_history
from support.evaluation.trees import git
from support.source.package_index import PackageIndex, sdist, serving

pytestmark = pytest.mark.anyio

TREES = {
    "1.0": {
        "pack/one.py": "x = 1\r\n",
        ".gitignore": "built\n",
        "built/kept.py": "",
        ".gitattributes": "* text\n",
    },
    "2.0": {"pack/two.py": "x = 2\n"},
}


def archives() -> dict[str, bytes]:
    return {version: sdist("demo", version, files) for version, files in TREES.items()}


async def test_each_release_is_a_commit_with_its_files_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = archives()
    releases = [
        PackageRelease(version, sha256(content).hexdigest(), f"Release {version}")
        for version, content in made.items()
    ]
    index = PackageIndex({f"demo-{version}.tar.gz": content for version, content in made.items()})
    with serving(index):
        monkeypatch.setenv("PIP_INDEX_URL", index.url)
        folder = await release_history("demo", releases, tmp_path / "a")
        requested = len(index.requested_paths)
        assert await release_history("demo", releases, tmp_path / "a") == folder
        assert len(index.requested_paths) == requested
        other = await release_history("demo", releases, tmp_path / "b")
        with pytest.raises(SourceError, match=r"demo 3\.0"):
            await release_history("demo", [PackageRelease("3.0", "0" * 64, "none")], tmp_path / "a")
    log = git(folder, "log", "--format=%H %s", "main").decode().splitlines()
    assert [line.partition(" ")[2] for line in log] == ["Release 2.0", "Release 1.0"]
    assert git(other, "log", "--format=%H %s", "main").decode().splitlines() == log
    names = git(folder, "ls-tree", "-r", "--name-only", "main~1").decode().splitlines()
    assert names == sorted(TREES["1.0"])
    assert git(folder, "cat-file", "blob", "main~1:pack/one.py") == b"x = 1\r\n"
    assert git(folder, "ls-tree", "-r", "--name-only", "main").decode().splitlines() == ["pack/two.py"]
