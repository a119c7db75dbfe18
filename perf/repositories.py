"""Git for the scripts of this folder, with codetaste's git settings."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from codetaste.source.git import git_command, git_environment

if TYPE_CHECKING:
    from pathlib import Path


def git(where: Path, *words: str | Path, stdin: bytes | None = None) -> bytes:
    """Run git in the folder ``where``; return its output."""
    command = git_command([*map(str, words)])
    environment = git_environment(network=True)  # cloning a local folder uses a transport too
    return subprocess.run(
        command, cwd=where, check=True, capture_output=True, input=stdin, env=environment
    ).stdout


def import_history(folder: Path, stream: bytes) -> None:
    """Make a bare clone in ``folder`` of a stream for ``git fast-import`` with the branch "made"."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", ".")
    git(folder, "fast-import", "--quiet", stdin=stream)
    git(folder, "symbolic-ref", "HEAD", "refs/heads/made")
