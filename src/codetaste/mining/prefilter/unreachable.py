"""Why the diff of a commit cannot be had."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.mining.commit import CommitRecord


class UnreachableReason(StrEnum):
    """Kinds of reasons, which are counted."""

    NO_REPOSITORY = "repository deleted, private or renamed"
    NO_COMMIT = "commit deleted or force-pushed"
    NO_PARENT = "root commit"
    NO_CLONE = "no local clone"
    """And the network may not be used."""
    MISSING_OBJECTS = "contents not in the clone"
    TOO_LARGE = "diff too large"
    TIMEOUT = "comparison took too long"
    NO_ANSWER = "no answer"
    """The server or the network failed: the commit may be there, and can be tried again."""

    @property
    def temporary(self) -> bool:
        """True if a later attempt can succeed."""
        return self is UnreachableReason.NO_ANSWER


@dataclass(frozen=True, slots=True)
class Unreachable:
    """A commit without a diff; ``detail`` is one line with what was tried."""

    record: CommitRecord
    reason: UnreachableReason
    detail: str
