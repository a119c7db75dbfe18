"""Changed files and lines of many commits, from one git process that is started again where it fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Self

from codetaste.errors import SourceError
from codetaste.mining.clones.git.changed_files import COMPARE, RENAMES, LineCounts, RawEntry, read_entries
from codetaste.mining.clones.git.comparison import open_comparison
from codetaste.mining.clones.git.stream import SILENCE_S, GitTooSlow
from codetaste.mining.clones.problem import CommitProblem, CommitProblemKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import TracebackType

    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.clones.git.stream import GitStream
    from codetaste.mining.clones.problem import Report

_BY_LINES = (*COMPARE, "--raw", "--numstat", *RENAMES, "--stdin", "--always")
_BY_RENAMES = (*COMPARE, "--raw", *RENAMES, "--stdin", "--always")
"""Needs contents only where files were added and others deleted."""
_BY_FILES = (*COMPARE, "--raw", "-M100%", "--stdin", "--always")
"""Needs no contents: files that were moved and edited count twice."""
_BY_NOTHING: tuple[str, ...] = ()
MAX_FAILURES = 100
"""After so many failures the counting goes on with less: files only, and then nothing."""


class ChangeCounts(NamedTuple):
    """Of one commit; None is unknown."""

    files: int | None
    additions: int | None
    deletions: int | None


@dataclass(slots=True)
class _Sum:
    """Entries of one commit that were read so far."""

    commit: str
    files: int = 0
    counted: int = 0
    additions: int = 0
    deletions: int = 0


class ChangeCounter:
    """Counts the changes of commits in the order of a list. A context; blocking.

    Args:
        clone: the clone.
        lines: count lines too, which takes about ten times as long.
        listed: path of a file with lines ``COMMIT PARENT``.
        report: gets the problems.
        check: called often; what it raises ends the counting.
        silence_s: limit of the comparison of one commit, seconds.
    """

    def __init__(
        self,
        clone: Clone,
        listed: str,
        report: Report,
        check: Callable[[], None],
        silence_s: float = SILENCE_S,
        *,
        lines: bool = True,
    ) -> None:
        self._clone, self._report, self._check, self._silence_s = clone, report, check, silence_s
        self._listed = listed
        self._next_line = 0
        self._command: tuple[str, ...] = _BY_FILES if clone.partial else _BY_LINES if lines else _BY_RENAMES
        self._failures = 0
        self._failure, self._slow = "", False
        self._context: AbstractContextManager[GitStream] | None = None
        self._sums: Iterator[_Sum] = iter(())

    def __enter__(self) -> Self:
        """Start git."""
        if self._clone.partial:
            detail = f"a partial clone: lines are not counted; {self._clone.hint}"
            kind = CommitProblemKind.MISSING_OBJECTS
            self._report(CommitProblem(self._clone.repository, "", kind, detail, skipped=False))
        self._start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End git."""
        self._stop()

    def count(self, line: bytes) -> ChangeCounts:
        """Return the counts of the next commit of the list, whose line this is."""
        if self._command is _BY_NOTHING:
            return ChangeCounts(None, None, None)
        commit = line.split()[0].decode()
        self._next_line += len(line)
        found = next(self._sums, None)
        if found is not None and found.commit == commit:
            by_lines = self._command is _BY_LINES
            lines = (found.additions, found.deletions) if by_lines else (None, None)
            return ChangeCounts(found.files, *lines)
        return self._recover(line, commit)

    def _recover(self, line: bytes, commit: str) -> ChangeCounts:
        """Count the files of the commit at which git failed, and start git again behind it."""
        kind = CommitProblemKind.TIMEOUT if self._slow else CommitProblemKind.MISSING_OBJECTS
        self._stop()
        files = None if self._command is _BY_FILES else self._count_files(line)
        what = "files" if files is None else "renames" if self._command is _BY_RENAMES else "lines"
        detail = f"its {what} are not counted: {self._failure or 'git ended early'}"
        if not self._slow:
            detail += f"; {self._clone.hint}"
        self._failures += 1
        if self._failures == MAX_FAILURES:
            detail += f"; from here on no {what} are counted"
            self._command = _BY_FILES if files is not None else _BY_NOTHING
            self._failures = 0
        self._report(CommitProblem(self._clone.repository, commit, kind, detail, skipped=False))
        if self._command is not _BY_NOTHING:
            self._start()
        return ChangeCounts(files, None, None)

    def _count_files(self, line: bytes) -> int | None:
        commit, parent = line.decode().split()
        command = [*(word for word in _BY_FILES if word not in {"--stdin", "--always"}), parent, commit]
        try:
            with open_comparison(self._clone.git_dir, command, len(commit), check=self._check) as stream:
                count = sum(isinstance(entry, RawEntry) for entry in read_entries(stream.tokens()))
                return None if stream.failure() else count
        except SourceError:
            return None

    def _start(self) -> None:
        with open(self._listed, "rb", buffering=0) as listed:  # noqa: PTH123 - the name of a temporary file
            digits = len(listed.readline().partition(b" ")[0])
            listed.seek(self._next_line)
            self._context = open_comparison(
                self._clone.git_dir,
                self._command,
                digits,
                stdin=listed,
                check=self._check,
                silence_s=self._silence_s,
            )
            self._sums = self._read_sums(self._context.__enter__())

    def _stop(self) -> None:
        if self._context is not None:
            self._context.__exit__(None, None, None)
            self._context = None

    def _read_sums(self, stream: GitStream) -> Iterator[_Sum]:
        """Yield what is complete; ``_failure`` says why the output ended."""
        current: _Sum | None = None
        self._failure, self._slow = "", False
        try:
            for entry in read_entries(stream.tokens()):
                if isinstance(entry, bytes):
                    if current is not None:
                        yield current
                    current = _Sum(entry.decode("ascii", "replace"))
                elif current is not None:
                    _add(current, entry)
            self._failure = stream.failure()
        except GitTooSlow as error:
            self._failure, self._slow = str(error), True
        if current is not None and (self._command is not _BY_LINES or current.counted == current.files):
            yield current  # else git failed between its lists of files and of lines


def _add(total: _Sum, entry: RawEntry | LineCounts) -> None:
    if isinstance(entry, RawEntry):
        total.files += 1
    else:
        total.counted += 1
        total.additions += entry.additions or 0
        total.deletions += entry.deletions or 0
