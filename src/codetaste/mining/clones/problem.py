"""What is wrong with one commit, or with the history of one clone. It is reported, and the run goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class CommitProblemKind(StrEnum):
    """Kinds of problems, which are counted."""

    NO_HISTORY = "history not readable"
    """Git stopped in the middle of the history."""
    NO_COMMIT = "commit not readable"
    ROOT = "root commit"
    """It has no parent, so there is no R."""
    SHALLOW = "parent not in the clone"
    """The history of a shallow clone ends here."""
    MISSING_OBJECTS = "objects not in the clone"
    """A partial or damaged clone: git cannot compare contents."""
    TIMEOUT = "comparison took too long"
    TOO_LARGE = "diff too large"
    ENCODING = "message not decodable"
    """Some characters of the message are replaced."""


@dataclass(frozen=True, slots=True)
class CommitProblem:
    """A problem of one commit.

    Attributes:
        repository: ``OWNER/REPO``.
        commit: hash of the commit; "" if the whole history is meant.
        kind: what is counted.
        detail: one line with what was expected or what can be done.
        skipped: the commit is left out; otherwise something about it is unknown.
    """

    repository: str
    commit: str
    kind: CommitProblemKind
    detail: str
    skipped: bool

    def __str__(self) -> str:
        """Return the line of a log."""
        name = f"{self.repository}@{self.commit[:10]}" if self.commit else self.repository
        return f"{name}: {self.kind}: {self.detail}" + (" (skipped)" if self.skipped else "")


Report = Callable[[CommitProblem], None]
"""Gets each problem as it is found."""
