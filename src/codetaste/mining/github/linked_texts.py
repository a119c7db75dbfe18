"""The texts that belong to a change: its pull requests, and the issues that they close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.mining.github.answer import ApiOutcome, Lookup, LookupKind, TextFacts

if TYPE_CHECKING:
    from codetaste.mining.commit import CommitRecord, PullRequest
    from codetaste.mining.github.answer import Issue
    from codetaste.mining.github.client import GitHubClient


@dataclass(frozen=True, slots=True)
class LinkedTexts:
    """Texts of a change.

    Attributes:
        outcome: ``found``, or why GitHub gave no texts.
        pull_requests: the pull request of the record, or those that its commit came with; at most ten.
        issues: that the pull requests close, at most ten of each.
        detail: the reason in one line if nothing was found.
    """

    outcome: ApiOutcome
    pull_requests: tuple[PullRequest, ...] = ()
    issues: tuple[Issue, ...] = ()
    detail: str = ""


async def linked_texts(record: CommitRecord, client: GitHubClient) -> LinkedTexts:
    """Return the texts of a change. Without an answer of GitHub they are what the record itself has.

    Raises:
        ConfigError: GitHub does not accept the token.
        SourceError: the cache cannot be read or written.
        StorageFull: no space left for the cache.
    """
    if record.pull_request is not None:
        lookup = Lookup(LookupKind.PULL_REQUEST_TEXTS, record.repository, str(record.pull_request.number))
    else:
        lookup = Lookup(LookupKind.COMMIT_TEXTS, record.repository, record.golden)
    answer = (await client.look_up([lookup]))[lookup]
    if isinstance(answer.facts, TextFacts):
        return LinkedTexts(answer.outcome, answer.facts.pull_requests, answer.facts.issues)
    own = (record.pull_request,) if record.pull_request and record.pull_request.title else ()
    return LinkedTexts(answer.outcome, own, detail=answer.detail)
