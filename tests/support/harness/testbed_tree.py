"""A testbed unpacked on disk, which a test edits like an agent, and the trees that git makes of it."""

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
    """A folder with a git repository."""

    path: Path

    def git(self, *args: str, stdin: bytes = b"", check: bool = True) -> bytes:
        done = subprocess.run(
            ["git", *args], cwd=self.path, input=stdin, capture_output=True, env=GIT_ENVIRONMENT, check=False
        )
        assert not check or done.returncode == 0, (args, done.stderr)
        return done.stdout

    def staged_tree(self) -> bytes:
        """Return the id of the staged tree."""
        return self.git("write-tree").strip()

    def compute_expected_tree(self, scratch: Path, base: Path) -> bytes:
        """Return the id of the tree that ``git add --all`` makes of this folder in a repository of R only."""
        reference = make_repository(base, scratch)
        for path in scratch.iterdir():
            if path.name != ".git":
                remove_path(path)
        # Copies need a new mtime: git sees no change in a file whose size and mtime in seconds are equal.
        shutil.copytree(
            self.path,
            scratch,
            symlinks=True,
            ignore=_git_folders,
            copy_function=shutil.copy,
            dirs_exist_ok=True,
        )
        reference.git("add", "--all")
        return reference.staged_tree()


def make_repository(base: Path, folder: Path) -> WorkTree:
    """Create a repository in the new ``folder`` with the files of ``base`` committed."""
    shutil.copytree(base, folder, symlinks=True)
    repository = WorkTree(folder)
    repository.git("init", "--quiet")
    (folder / ".git/info").mkdir(exist_ok=True)
    (folder / ".git/info/attributes").write_text("* -text -ident -filter !working-tree-encoding\n")
    repository.git("add", "--all", "--force")
    repository.git(
        "-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty", "-m", "R"
    )
    return repository


def apply_patch(base: Path, folder: Path, patch: bytes) -> bytes:
    """Apply ``patch`` to R with a plain ``git apply --index``; return the id of the tree."""
    repository = make_repository(base, folder)
    if patch:
        repository.git("apply", "--index", "--whitespace=nowarn", "-", stdin=patch)
    assert repository.git("diff", "--name-only") == b""
    return repository.staged_tree()


async def unpack_testbed(testbed: Testbed, folder: Path, files: dict[str, bytes] | None = None) -> WorkTree:
    """Unpack a sandbox's initial files below ``folder``; return its /testbed."""
    archive = b"".join([chunk async for chunk in testbed_archive(testbed, files or {})])
    await to_thread.run_sync(_unpack, archive, folder)
    return WorkTree(folder / "testbed")


def _unpack(archive: bytes, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=archive, check=True)


def _git_folders(folder: str, names: list[str]) -> list[str]:
    return [name for name in names if name == ".git"]


def remove_path(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
