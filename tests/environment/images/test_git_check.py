"""Golden objects in a repository of a sandbox are found with git, wherever they hide."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from codetaste.environment.images.git_check import check_other_repositories, check_testbed, scrub_testbed
from support.environment.golden import BASE, GOLDEN, repository_files, write_tree
from support.environment.root_folder import RootFolder, make_root
from support.source.repositories import ENVIRONMENT

pytestmark = pytest.mark.anyio


class Testbed:
    """A root folder with R in /testbed, and a clone with the golden commit beside it."""

    def __init__(self, root: RootFolder, origin: Path) -> None:
        self.root, self.path, self.origin = root, root.folder / "testbed", origin
        repository_files(self.path, BASE, packed=False)
        self.git("branch", "-M", "main")
        self.git("reflog", "expire", "--expire=now", "--all")
        self.commit = self.git("rev-parse", "HEAD")
        repository_files(origin, GOLDEN, packed=True)
        self.golden = self.git("rev-parse", "HEAD", path=origin)

    def git(self, *args: str, path: Path | None = None) -> str:
        command = ["git", "-C", str(path or self.path), *args]
        return (
            subprocess.run(command, check=True, env=ENVIRONMENT, capture_output=True).stdout.decode().strip()
        )

    async def findings(self) -> list[str]:
        return [str(one) for one in await check_testbed(self.root.sandbox, self.commit, [self.golden])]


@pytest.fixture
def testbed(tmp_path: Path, bubblewrap: Path) -> Testbed:
    made = Testbed(make_root(tmp_path / "root", bubblewrap), tmp_path / "origin")
    # The repository of a real testbed has no reflogs from the start.
    shutil.rmtree(made.path / ".git/logs")
    return made


async def test_repository_of_one_commit_passes(testbed: Testbed) -> None:
    await scrub_testbed(testbed.root.sandbox)
    assert await testbed.findings() == []


FETCHES = {
    "a remote with a branch": [["remote", "add", "origin", "ORIGIN"], ["fetch", "-q", "origin"]],
    "a fetch without a name": [["fetch", "-q", "ORIGIN", "HEAD"]],
    "a tag": [["fetch", "-q", "ORIGIN", "HEAD"], ["tag", "v2", "FETCH_HEAD"]],
    "a note and a replacement": [
        ["fetch", "-q", "ORIGIN", "HEAD"],
        ["notes", "add", "-m", "x", "FETCH_HEAD"],
        ["replace", "HEAD", "FETCH_HEAD"],
    ],
    "a work tree": [["fetch", "-q", "ORIGIN", "HEAD"], ["worktree", "add", "-q", "../other", "FETCH_HEAD"]],
}


@pytest.mark.parametrize("commands", FETCHES.values(), ids=FETCHES)
async def test_what_was_fetched_is_found_and_can_be_removed(
    testbed: Testbed, commands: list[list[str]]
) -> None:
    for command in commands:
        testbed.git(*(part.replace("ORIGIN", str(testbed.origin)) for part in command))
    assert any(testbed.golden in line for line in await testbed.findings())
    await scrub_testbed(testbed.root.sandbox)
    assert await testbed.findings() == []


async def test_objects_of_another_repository_are_found(testbed: Testbed) -> None:
    copy = testbed.root.folder / "opt/clone"
    shutil.copytree(testbed.origin, copy)
    alternates = testbed.path / ".git/objects/info/alternates"
    alternates.parent.mkdir(parents=True, exist_ok=True)
    alternates.write_text("/opt/clone/.git/objects\n")
    assert any("objects/info/alternates" in line for line in await testbed.findings())
    await scrub_testbed(testbed.root.sandbox)
    assert await testbed.findings() == []
    found = await check_other_repositories(testbed.root.sandbox, [testbed.golden])
    assert [one.repository for one in found] == ["/opt/clone/.git"]
    assert f"{testbed.golden} commit" in str(found[0])


async def test_stash_commit_and_dirty_tree_are_found(testbed: Testbed) -> None:
    write_tree(testbed.path, GOLDEN)
    assert any("git status" in line for line in await testbed.findings())
    testbed.git("stash", "-q")
    assert any("git stash list" in line for line in await testbed.findings())
    testbed.git("stash", "drop", "-q")
    assert any("git fsck: unreachable" in line for line in await testbed.findings())
    testbed.git("commit", "-q", "--allow-empty", "-m", "more")
    await scrub_testbed(testbed.root.sandbox)
    assert any("git rev-parse HEAD" in line for line in await testbed.findings())
