"""The relation of commits that every source yields and every filter reads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.mining.keywords.message import pull_request_text

if TYPE_CHECKING:
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class PullRequest:
    """The pull request that a commit merged; texts are "" where it has none."""

    number: int
    title: str
    body: str


@dataclass(frozen=True, slots=True)
class CommitRecord:
    """One change that a source yields. None is what the source does not know.

    Attributes:
        repository: ``OWNER/REPO``, as the source spells it.
        golden: hash of the commit R∘X*, 40 or 64 lower-case hex digits; of a pull request its merge commit;
            "" if it is not known yet.
        base: hash of R; None for the first parent of ``golden``.
        message: message of the commit; "" if unknown.
        pull_request: the merged pull request, if the source has it.
        stars: of the repository.
        files: changed files.
        additions: added lines.
        deletions: removed lines.
        date: when it was committed or merged, with a time zone.
        licence: SPDX identifier.
        source: the name of what yielded it, such as an hour of GH Archive or the path of a clone.
    """

    repository: str
    golden: str
    base: str | None = None
    message: str = ""
    pull_request: PullRequest | None = None
    stars: int | None = None
    files: int | None = None
    additions: int | None = None
    deletions: int | None = None
    date: datetime | None = None
    licence: str | None = None
    source: str = ""

    @property
    def text(self) -> str:
        """The message M that keywords are counted in: title and body of the pull request.

        Of a commit without one it is the message, without what GitHub adds when it merges a pull request.
        """
        if self.pull_request is None:
            return pull_request_text(self.message)
        return f"{self.pull_request.title}\n\n{self.pull_request.body}".strip()

    @property
    def name(self) -> str:
        """The commit in messages: ``OWNER/REPO@`` and the first digits of its hash."""
        return f"{self.repository}@{self.golden[:10]}"
