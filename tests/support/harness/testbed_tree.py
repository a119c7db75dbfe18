"""A testbed unpacked on disk, in which a test does what an agent would; and git as the judge of a patch."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from anyio import to_thread

from codetaste.harness.testbed.testbed import Testbed, testbed_archive

GIT_ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "safe.directory",
    "GIT_CONFIG_VALUE_0": "*",
}


@dataclass(frozen=True)
class WorkTree:
    """A folder with a repository in it."""

    path: Path

    def git(self, *args: str, stdin: bytes = b"", check: bool = True) -> bytes:
        done = subprocess.run(
            ["git", *args], cwd=self.path, input=stdin, capture_output=True, env=GIT_ENVIRONMENT, check=False
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout

    def tree(self) -> bytes:
        """The id of the tree that is staged."""
        return self.git("write-tree").strip()

    def judged(self, scratch: Path, base: Path) -> bytes:
        """The tree that ``git add --all`` makes of this folder in a repository of R alone."""
        judge = repository_of(base, scratch)
        for path in scratch.iterdir():
            if path.name != ".git":
                remove(path)
        shutil.copytree(self.path, scratch, symlinks=True, dirs_exist_ok=True, ignore=_git_folders)
        judge.git("add", "--all")
        return judge.tree()


def repository_of(base: Path, folder: Path) -> WorkTree:
    """Make a repository with the files of ``base``, committed, at the new place ``folder``."""
    shutil.copytree(base, folder, symlinks=True)
    made = WorkTree(folder)
    made.git("init", "--quiet")
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* -text -ident -filter !working-tree-encoding\n")
    made.git("add", "--all", "--force")
    made.git(
        "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "R"
    )
    return made


def applied(base: Path, folder: Path, patch: bytes) -> bytes:
    """Apply ``patch`` to R with a plain ``git apply --index``; return the tree, as which the files are."""
    repository = repository_of(base, folder)
    if patch:
        repository.git("apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
    assert repository.git("diff", "--name-only") == b""
    return repository.tree()


async def unpacked(testbed: Testbed, folder: Path, files: dict[str, bytes] | None = None) -> WorkTree:
    """Unpack what goes into a box below ``folder``; return its /testbed."""
    archive = b"".join([piece async for piece in testbed_archive(testbed, files or {})])
    await to_thread.run_sync(_unpack, archive, folder)
    return WorkTree(folder / "testbed")


def _unpack(archive: bytes, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)


def _git_folders(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == ".git"]


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
