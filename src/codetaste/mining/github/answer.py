"""What is asked of GitHub and what it answers: a lookup, its outcome, and the facts that were found."""

from __future__ import annotations

import re
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict

from codetaste.mining.commit import PullRequest

_NAME = re.compile(r"[A-Za-z0-9_-]{1,100}/(?!\.\.?\Z)[A-Za-z0-9_.-]{1,100}")
"""No owner has a dot in its name, and no name is a step in a path."""
_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_MAX_NUMBER = 2**31 - 1
"""GraphQL's Int has 32 bits."""
MAX_HISTORY = 99
"""Commits of a rebased pull request whose parent can be found: GitHub lists 100 commits in one answer."""


class ApiOutcome(StrEnum):
    """What came of a lookup, or of the completion of a record."""

    FOUND = "found"
    """A lookup has its facts."""
    COMPLETED = "completed"
    """The record has all that GitHub knows."""
    RENAMED = "renamed"
    """As completed; the repository has another name now."""
    NOT_MERGED = "not merged"
    """The pull request was closed without a merge, or is open."""
    NO_COMMIT = "no commit"
    """The pull request was merged, but GitHub no longer knows by which commit."""
    DELETED = "deleted"
    """The repository is gone, or private."""
    NOT_FOUND = "not found"
    """The repository has no such pull request or commit."""
    REFUSED = "refused"
    """GitHub refuses to show it, for legal reasons or by an organisation's rules."""
    INVALID = "invalid"
    """No repository, pull request or commit can have this name."""
    MALFORMED = "malformed"
    """The answer has missing or wrong fields."""
    UNAVAILABLE = "unavailable"
    """No answer after all attempts; a later run asks again."""
    LIMITED = "limited"
    """The rate limit is used up for longer than the config allows to wait; a later run asks again."""
    NO_TOKEN = "no token"  # noqa: S105 - an outcome
    """It cannot be asked without a token; a later run with one does."""


class LookupKind(StrEnum):
    """What can be looked up."""

    REPOSITORY = "repository"
    PULL_REQUEST = "pull request"
    COMMIT = "commit"
    PARENT = "parent"
    """The commit before a rebased pull request."""
    PULL_REQUEST_TEXTS = "texts of a pull request"
    COMMIT_TEXTS = "texts of a commit"


class Lookup(NamedTuple):
    """One thing to look up.

    Attributes:
        kind: what it is.
        repository: ``OWNER/REPO``.
        key: the number of a pull request or the hash of a commit; "" for a repository.
    """

    kind: LookupKind
    repository: str
    key: str = ""

    @property
    def is_valid(self) -> bool:
        """Whether GitHub can have it."""
        if not _NAME.fullmatch(self.repository):
            return False
        match self.kind:
            case LookupKind.REPOSITORY:
                return not self.key
            case LookupKind.PULL_REQUEST | LookupKind.PARENT | LookupKind.PULL_REQUEST_TEXTS:
                return self.key.isascii() and self.key.isdecimal() and 1 <= int(self.key[:20]) <= _MAX_NUMBER
        return bool(_OID.fullmatch(self.key))


class ApiFacts(BaseModel):
    """What was found out; immutable, and JSON in the cache."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class RepositoryFacts(ApiFacts):
    """A repository under its present name; ``licence`` is an SPDX identifier, or ``NOASSERTION``."""

    name: str
    stars: int
    licence: str | None
    fork: bool


class PullRequestFacts(ApiFacts):
    """A pull request. ``golden`` is its merge commit; sizes are those of its diff against the merge base.

    ``maybe_rebased``: it has several commits, and its merge commit has another size than all of them, so the
    first parent of the merge commit may be one of its own commits.
    """

    repository: RepositoryFacts
    number: int
    title: str
    body: str
    merged: bool
    merged_at: datetime | None
    golden: str | None
    files: int
    additions: int
    deletions: int
    commits: int
    maybe_rebased: bool


class CommitFacts(ApiFacts):
    """A commit; ``pull_request`` is the one that it merged.

    ``files`` is None if GitHub did not count them, ``date`` and ``repository`` if the answer has none.
    """

    repository: RepositoryFacts | None
    hash: str
    message: str
    date: datetime | None
    files: int | None
    additions: int
    deletions: int
    pull_request: PullRequest | None


class ParentFacts(ApiFacts):
    """The commit before those of a rebased pull request; None if it was not rebased."""

    base: str | None


class Issue(ApiFacts):
    """An issue that a pull request closes."""

    repository: str
    number: int
    title: str
    body: str


class TextFacts(ApiFacts):
    """The merged pull requests that a change belongs to, and the issues that they close."""

    pull_requests: tuple[PullRequest, ...]
    issues: tuple[Issue, ...]


class Answer(NamedTuple):
    """The result of a lookup: ``facts`` if it was found, ``detail`` in one line if it was not."""

    outcome: ApiOutcome
    facts: ApiFacts | None = None
    detail: str = ""


FACTS_OF_KIND: dict[LookupKind, type[ApiFacts]] = {
    LookupKind.REPOSITORY: RepositoryFacts,
    LookupKind.PULL_REQUEST: PullRequestFacts,
    LookupKind.COMMIT: CommitFacts,
    LookupKind.PARENT: ParentFacts,
    LookupKind.PULL_REQUEST_TEXTS: TextFacts,
    LookupKind.COMMIT_TEXTS: TextFacts,
}
