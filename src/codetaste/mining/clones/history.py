"""The commits of a clone, each with its first parent: every branch, tag and remote branch, and HEAD."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

from codetaste.core.hashing import json_digest
from codetaste.mining.clones.git.stream import GitTooSlow, open_git_stream
from codetaste.mining.clones.problem import CommitProblem, CommitProblemKind
from codetaste.source.git import run_git

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.problem import Report

_NO_HISTORY = (
    *("refs/notes/*", "refs/stash", "refs/replace/*", "refs/bisect/*", "refs/original/*"),
    *("refs/pull/*", "refs/merge-requests/*", "refs/changes/*", "refs/fetched/*"),
)
"""Refs that are no history of the project, such as the heads of unmerged pull requests in a mirror."""


async def history_digest(clone: Clone) -> str:
    """Return a digest that changes whenever other commits are reached than before: refs, HEAD, cut-off ends.

    Raises:
        ToolMissing: git is not installed.
    """
    excluded = [f"--exclude={pattern}" for pattern in _NO_HISTORY]
    refs = await run_git("rev-parse", *excluded, "--all", git_dir=clone.git_dir)
    head = await run_git("rev-parse", "--verify", "--quiet", "HEAD", git_dir=clone.git_dir)
    ends = {line.decode("ascii", "replace") for line in (refs.output + head.output).split()}
    return json_digest([sorted(ends), sorted(clone.shallow)])


def write_history(
    clone: Clone, into: IO[bytes], report: Report, check: Callable[[], None], commits: Iterable[str] = ()
) -> int:
    r"""Write a line ``COMMIT PARENT\n`` for each commit that has a parent, and return their number.

    Root commits and the last commits of a shallow clone are reported and left out.

    Args:
        clone: the clone.
        into: an empty file.
        report: gets the problems.
        check: called often; what it raises ends the listing.
        commits: revisions whose history is listed; none: all refs.
    """
    excluded = [f"--exclude={pattern}" for pattern in _NO_HISTORY]
    which = ["--end-of-options", *commits] if commits else [*excluded, "--all"]
    count = 0
    with open_git_stream(
        clone.git_dir, ["rev-list", "--parents", "--ignore-missing", *which], check=check
    ) as stream:
        try:
            for line in _lines(stream.read):
                commit, *parents = line.split()
                if parents:
                    into.write(b"%s %s\n" % (commit, parents[0]))
                    count += 1
                else:
                    report(_no_parent(clone, commit.decode()))
            failure = stream.failure()
        except GitTooSlow as error:
            failure = str(error)
    if failure:
        detail = f"git lists {count:,} commits, then: {failure}; check the clone with git fsck"
        report(CommitProblem(clone.repository, "", CommitProblemKind.NO_HISTORY, detail, skipped=False))
    into.flush()
    return count


def _no_parent(clone: Clone, commit: str) -> CommitProblem:
    if commit in clone.shallow:
        return CommitProblem(clone.repository, commit, CommitProblemKind.SHALLOW, clone.hint, skipped=True)
    return CommitProblem(
        clone.repository, commit, CommitProblemKind.ROOT, "there is no code before it", skipped=True
    )


def _lines(read: Callable[[], bytes]) -> Iterator[bytes]:
    rest = b""
    while chunk := read():
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
