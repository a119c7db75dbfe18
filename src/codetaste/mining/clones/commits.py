"""All commits of a local clone as records, in bounded memory. Merges are compared with their first parent."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from codetaste.errors import SourceError
from codetaste.mining.clones.change_counts import ChangeCounter
from codetaste.mining.clones.git.commit_object import parse_commit
from codetaste.mining.clones.git.licence import LicenceReader
from codetaste.mining.clones.git.objects import BATCH, read_objects
from codetaste.mining.clones.git.stream import SILENCE_S, open_git_stream
from codetaste.mining.clones.history import write_history
from codetaste.mining.clones.problem import CommitProblem, CommitProblemKind
from codetaste.mining.commit import CommitRecord

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import IO

    from codetaste.mining.clones.change_counts import ChangeCounts
    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.git.objects import GitObject
    from codetaste.mining.clones.problem import Report


def read_commits(
    clone: Clone,
    report: Report,
    *,
    check: Callable[[], None] = lambda: None,
    commits: tuple[str, ...] = (),
    silence_s: float = SILENCE_S,
    lines: bool = True,
) -> Iterator[CommitRecord]:
    """Yield the commits of ``clone`` that have a parent, in the order of ``git rev-list``. Blocking.

    What cannot be read is reported and skipped, and the iteration goes on. Where git lacks the contents that
    a comparison needs, and in all of a partial clone, lines are None, and a file that was moved and edited
    counts as two.

    Args:
        clone: the clone.
        report: gets the problems.
        check: called often; what it raises ends the iteration (``from_thread.check_cancelled``).
        commits: revisions whose history is read; none: all of the clone.
        silence_s: limit of the comparison of one commit, seconds.
        lines: count added and removed lines; without them reading is several times as fast. No filter of
            stage 1 needs them, and stage 2 counts those of the commits that reach it.

    Raises:
        ToolMissing: git is not installed.
    """
    with ExitStack() as stack:
        listed = stack.enter_context(tempfile.NamedTemporaryFile())
        if not write_history(clone, listed.file, report, check, commits):
            return
        trees = stack.enter_context(tempfile.TemporaryFile())
        with open(listed.name, "rb") as names:  # noqa: PTH123 - a temporary file
            trees.writelines(b"%s^{tree}\n" % line.split()[0] for line in names)
        pairs = stack.enter_context(open(listed.name, "rb"))  # noqa: PTH123 - a temporary file
        counter = stack.enter_context(
            ChangeCounter(clone, listed.name, report, check, silence_s, lines=lines)
        )
        objects = _objects(clone, listed.file, check, stack)
        top_folders = _objects(clone, trees, check, stack)
        licences = LicenceReader(clone.git_dir)
        for line in pairs:
            commit, parent = line.decode().split()
            counts = counter.count(line)
            found, tree = next(objects, None), next(top_folders, None)
            if found is None or found.kind != "commit":
                report(_unreadable(clone, commit))
                continue
            licence = licences.licence(tree.content, len(commit)) if tree and tree.kind == "tree" else None
            yield _record(clone, found, parent, counts, licence, report)


def _objects(
    clone: Clone, names: IO[bytes], check: Callable[[], None], stack: ExitStack
) -> Iterator[GitObject]:
    """Yield the objects of the names in a file; the end comes early if git fails."""
    names.seek(0)
    stream = stack.enter_context(open_git_stream(clone.git_dir, BATCH, stdin=names, check=check))
    with suppress(SourceError):
        yield from read_objects(stream)


def _record(
    clone: Clone, found: GitObject, parent: str, counts: ChangeCounts, licence: str | None, report: Report
) -> CommitRecord:
    parsed = parse_commit(found.content)
    if not parsed.decoded:
        detail = "bytes that are no characters are replaced"
        report(CommitProblem(clone.repository, found.name, CommitProblemKind.ENCODING, detail, skipped=False))
    return CommitRecord(
        clone.repository,
        found.name,
        parent,
        parsed.message,
        files=counts.files,
        additions=counts.additions,
        deletions=counts.deletions,
        date=parsed.date,
        licence=licence,
        source=clone.label,
    )


def _unreadable(clone: Clone, commit: str) -> CommitProblem:
    return CommitProblem(clone.repository, commit, CommitProblemKind.NO_COMMIT, clone.hint, skipped=True)
