"""The texts that belong to a change: its pull requests, and the issues that they close."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.mining.github.answer import ApiOutcome, Lookup, LookupKind, TextFacts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.commit import CommitRecord, PullRequest
    from codetaste.mining.github.answer import Answer, Issue
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


async def linked_texts(records: Sequence[CommitRecord], client: GitHubClient) -> list[LinkedTexts]:
    """Return the texts of changes, in their order. Without an answer of GitHub they are what a record has.

    Raises:
        ConfigError: GitHub does not accept the token.
        SourceError: the cache cannot be read or written.
        StorageFull: no space left for the cache.
    """
    lookups = [_lookup_for(record) for record in records]
    answers = await client.look_up(lookups)
    return [_texts(record, answers[lookup]) for record, lookup in zip(records, lookups, strict=True)]


def _lookup_for(record: CommitRecord) -> Lookup:
    if record.pull_request is not None:
        return Lookup(LookupKind.PULL_REQUEST_TEXTS, record.repository, str(record.pull_request.number))
    return Lookup(LookupKind.COMMIT_TEXTS, record.repository, record.golden)


def _texts(record: CommitRecord, answer: Answer) -> LinkedTexts:
    if isinstance(answer.facts, TextFacts):
        return LinkedTexts(answer.outcome, answer.facts.pull_requests, answer.facts.issues)
    own = (record.pull_request,) if record.pull_request and record.pull_request.title else ()
    return LinkedTexts(answer.outcome, own, detail=answer.detail)
