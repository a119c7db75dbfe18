"""The commits of a history, and why some of them are not mined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.source.git import run_git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.mining.clones.clone import Clone

_MARK = b"\x01"
_SUFFIX = b".java"


@dataclass(frozen=True, slots=True)
class HistoryCommit:
    """A commit.

    Attributes:
        name: its full hash.
        skipped: the outcome if it is not mined: "merge", "first_commit", "shallow" or "no_java"; else "".
    """

    name: str
    skipped: str


SKIPPED = {
    "merge": "a merge; the merged commits are mined",
    "first_commit": "it has no parent",
    "shallow": "its parent was not fetched",
    "no_java": "it changes no Java file",
}
"""The reasons of commits that are not mined, by outcome."""


async def list_commits(clone: Clone, revision: str, newest: int | None) -> list[HistoryCommit]:
    """Return the commits of a revision or range, the newest first, at most ``newest``.

    Raises:
        ConfigError: the clone has no such revision, or no commit.
        SourceError: git takes too long, or lists too much.
        ToolMissing: git is not installed.
    """
    options = ["--format=%x01%H %P", "--name-only", "-z", "--no-renames"]
    if newest is not None:
        options.append(f"--max-count={newest}")
    listed = await run_git("log", *options, "--end-of-options", revision, "--", git_dir=clone.git_dir)
    if not listed.ok:
        if revision == "HEAD":
            raise ConfigError(
                f"swe_refactor.build.repositories: {clone.label}: its HEAD has no commit; check a branch "
                "out, or name one in commits"
            )
        reason = listed.stderr.strip().splitlines()[-1:] or ["git gave no reason"]
        raise ConfigError(
            f"swe_refactor.build.commits: {clone.label}: {reason[0]}; name a branch, a commit or a range A..B"
        )
    return list(_parse(listed.output, clone.shallow))


async def count_commits(clone: Clone) -> int | None:
    """Return the number of commits in the history of a clone's HEAD; None if not all of it is there.

    Raises:
        SourceError: git takes too long.
        ToolMissing: git is not installed.
    """
    counted = await run_git("rev-list", "--count", "HEAD", git_dir=clone.git_dir)
    return int(counted.output) if counted.ok and not clone.shallow else None


def _parse(output: bytes, shallow: frozenset[str]) -> Iterator[HistoryCommit]:
    for entry in output.split(_MARK)[1:]:
        head, _, paths = entry.partition(b"\0")
        name, *parents = head.decode().split()
        java = any(path.endswith(_SUFFIX) for path in paths.split(b"\0"))
        yield HistoryCommit(name, _skipped(len(parents), shallow=name in shallow, java=java))


def _skipped(parents: int, *, shallow: bool, java: bool) -> str:
    if shallow:
        return "shallow"
    if parents != 1:
        return "merge" if parents else "first_commit"
    return "" if java else "no_java"
