"""Completion of records: what a source does not know of a commit is asked of GitHub.

A record of a pull request gets its texts, sizes, date and merge commit; a record of a commit its message,
sizes, date, and the pull request that it merged; both get stars and licence of the repository. What the
source knows stays, except the former name of a renamed repository.

The base of a pull request is the first parent of its merge commit, which a record states by None. Only after
a rebase in several commits it is an earlier one. ``baseRefOid`` is neither: it is the
commit that the branch had when the pull request was opened or last pushed to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

from codetaste.mining.commit import PullRequest
from codetaste.mining.github.answer import (
    MAX_HISTORY,
    ApiOutcome,
    CommitFacts,
    Lookup,
    LookupKind,
    ParentFacts,
    PullRequestFacts,
    RepositoryFacts,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.github.client import GitHubClient
    from codetaste.mining.github.graphql import Answers


@dataclass(frozen=True, slots=True)
class CompletedRecord:
    """A record with all that could be found out.

    Attributes:
        record: the record; with any outcome it has at least what it had.
        outcome: ``completed`` or ``renamed`` if it is complete, else why not.
        detail: the reason in one line; the old name of a renamed repository.
        repository: facts of the repository, None if they were not asked for or not found.
    """

    record: CommitRecord
    outcome: ApiOutcome
    detail: str = ""
    repository: RepositoryFacts | None = None

    @property
    def is_complete(self) -> bool:
        """Whether it has all that GitHub knows."""
        return self.outcome in {ApiOutcome.COMPLETED, ApiOutcome.RENAMED}


async def complete_records(
    records: Iterable[CommitRecord], client: GitHubClient
) -> AsyncIterator[CompletedRecord]:
    """Yield the completion of each record, in order; records that are complete are not asked for.

    Raises:
        ConfigError: GitHub does not accept the token.
        SourceError: the cache cannot be read or written.
        StorageFull: no space left for the cache.
    """
    remaining = iter(records)
    while chunk := list(islice(remaining, client.chunk)):
        wanted = {record: lookup for record in chunk if (lookup := _lookup_for(record))}
        answers = await client.look_up(wanted.values())
        answers |= await client.look_up(_further_lookups(wanted.values(), answers))
        for record in chunk:
            lookup = wanted.get(record)
            if lookup is None:
                yield CompletedRecord(record, ApiOutcome.COMPLETED)
            else:
                yield _complete(record, lookup, answers)


async def repository_stars(names: Iterable[str], client: GitHubClient) -> dict[str, int]:
    """Return the stars of those of the repositories ``OWNER/REPO`` that GitHub knows, by the name asked for.

    Raises:
        ConfigError: GitHub does not accept the token.
        SourceError: the cache cannot be read or written.
        StorageFull: no space left for the cache.
    """
    lookups = [Lookup(LookupKind.REPOSITORY, name) for name in dict.fromkeys(names)]
    answers = await client.look_up(lookups)
    facts = {lookup.repository: answers[lookup].facts for lookup in lookups}
    return {name: each.stars for name, each in facts.items() if isinstance(each, RepositoryFacts)}


def _lookup_for(record: CommitRecord) -> Lookup | None:
    """Return what to look up for the missing fields of a record; None if there are none."""
    sizes = (record.files, record.additions, record.deletions, record.date)
    if not record.golden or not record.text or None in sizes:
        if record.pull_request is not None:
            return Lookup(LookupKind.PULL_REQUEST, record.repository, str(record.pull_request.number))
        return Lookup(LookupKind.COMMIT, record.repository, record.golden)
    if record.stars is None or record.licence is None:
        return Lookup(LookupKind.REPOSITORY, record.repository)
    return None


def _further_lookups(lookups: Iterable[Lookup], answers: Answers) -> list[Lookup]:
    """Return what the first answers leave open: bases of rebased pull requests, facts of repositories."""
    further = []
    for lookup in lookups:
        match answers[lookup].facts:
            case PullRequestFacts() as facts if parent := _parent_lookup(lookup, facts):
                further.append(parent)
            case CommitFacts(repository=None):
                further.append(Lookup(LookupKind.REPOSITORY, lookup.repository))
    return further


def _parent_lookup(lookup: Lookup, facts: PullRequestFacts) -> Lookup | None:
    if not facts.maybe_rebased or facts.golden is None or facts.commits > MAX_HISTORY:
        return None
    return Lookup(LookupKind.PARENT, lookup.repository, lookup.key)


def _complete(record: CommitRecord, lookup: Lookup, answers: Answers) -> CompletedRecord:
    answer = answers[lookup]
    match answer.facts:
        case PullRequestFacts() as facts:
            return _complete_pull_request(record, lookup, facts, answers)
        case CommitFacts() as facts:
            return _complete_commit(record, lookup, facts, answers)
        case RepositoryFacts() as facts:
            return _complete_repository(record, facts)
    return CompletedRecord(record, answer.outcome, answer.detail)


def _complete_pull_request(
    record: CommitRecord, lookup: Lookup, facts: PullRequestFacts, answers: Answers
) -> CompletedRecord:
    assert record.pull_request is not None  # noqa: S101 - _lookup_for
    number = record.pull_request.number
    if not facts.merged:
        name = f"{record.repository}#{number}"
        return CompletedRecord(record, ApiOutcome.NOT_MERGED, f"{name} is not merged", facts.repository)
    known = record.pull_request
    record = replace(
        record,
        golden=record.golden or facts.golden or "",
        pull_request=known if known.title else PullRequest(number, facts.title, known.body or facts.body),
        files=facts.files if record.files is None else record.files,
        additions=facts.additions if record.additions is None else record.additions,
        deletions=facts.deletions if record.deletions is None else record.deletions,
        date=record.date or facts.merged_at,
    )
    parent = _parent_lookup(lookup, facts)
    if parent and record.base is None and record.golden == facts.golden:
        found = answers[parent]
        if not isinstance(found.facts, ParentFacts):
            detail = f"the commit before {record.repository}#{number}: {found.detail}"
            return CompletedRecord(record, found.outcome, detail, facts.repository)
        record = replace(record, base=found.facts.base)
    if not record.golden:
        detail = f"GitHub does not know the merge commit of {record.repository}#{number}"
        return CompletedRecord(record, ApiOutcome.NO_COMMIT, detail, facts.repository)
    return _complete_repository(record, facts.repository)


def _complete_commit(
    record: CommitRecord, lookup: Lookup, facts: CommitFacts, answers: Answers
) -> CompletedRecord:
    record = replace(
        record,
        message=record.message or facts.message,
        pull_request=facts.pull_request,
        files=facts.files if record.files is None else record.files,
        additions=facts.additions if record.additions is None else record.additions,
        deletions=facts.deletions if record.deletions is None else record.deletions,
        date=record.date or facts.date,
    )
    if facts.repository is not None:
        return _complete_repository(record, facts.repository)
    answer = answers[Lookup(LookupKind.REPOSITORY, lookup.repository)]
    if isinstance(answer.facts, RepositoryFacts):
        return _complete_repository(record, answer.facts)
    return CompletedRecord(record, answer.outcome, answer.detail)


def _complete_repository(record: CommitRecord, facts: RepositoryFacts) -> CompletedRecord:
    renamed = facts.name.lower() != record.repository.lower()
    detail = f"{record.repository} is {facts.name} now" if renamed else ""
    record = replace(
        record,
        repository=facts.name if renamed else record.repository,
        stars=facts.stars if record.stars is None else record.stars,
        licence=record.licence or facts.licence,
    )
    return CompletedRecord(record, ApiOutcome.RENAMED if renamed else ApiOutcome.COMPLETED, detail, facts)
