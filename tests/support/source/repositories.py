"""Real git repositories, created by the tests."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ENVIRONMENT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
}


@dataclass
class GitRepository:
    path: Path

    def git(self, *args: str, stdin: bytes = b"") -> str:
        done = subprocess.run(
            ["git", "-C", str(self.path), *args],
            input=stdin,
            capture_output=True,
            check=True,
            env=ENVIRONMENT,
        )
        return done.stdout.decode().strip()

    def commit(self, files: dict[bytes, bytes]) -> str:
        for name, content in files.items():
            path = self.path / os.fsdecode(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        return self.commit_all()

    def commit_all(self) -> str:
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", "x")
        return self.git("rev-parse", "HEAD")

    def blob(self, content: bytes) -> str:
        return self.git("hash-object", "-w", "--stdin", stdin=content)

    def tree(self, *entries: tuple[str, bytes, str]) -> str:
        """Write a tree object of (mode, name, hash), valid or not."""
        raw = b"".join(
            mode.encode() + b" " + name + b"\0" + bytes.fromhex(identity) for mode, name, identity in entries
        )
        return self.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=raw)

    def commit_tree(self, tree: str) -> str:
        return self.git("commit-tree", "-m", "x", tree)


def make_repository(path: Path) -> GitRepository:
    path.mkdir(parents=True)
    repository = GitRepository(path)
    repository.git("init", "--quiet", "--initial-branch=main")
    repository.git("config", "uploadpack.allowFilter", "true")
    return repository


def contents(root: Path) -> dict[bytes, tuple[str, bytes]]:
    """Return every file and link below ``root`` by name: its kind and its content or target."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            path = Path(folder) / name
            relative = os.fsencode(path.relative_to(root))
            if path.is_symlink():
                found[relative] = ("link", os.fsencode(os.readlink(path)))  # noqa: PTH115 - exact
            elif path.is_file():
                kind = "program" if path.stat().st_mode & 0o100 else "file"
                found[relative] = (kind, path.read_bytes())
    return found
