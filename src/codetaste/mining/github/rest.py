"""Single lookups through REST: what can be asked without a token, and what GraphQL fails at."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ConfigDict

from codetaste.mining.github.answer import (
    Answer,
    ApiFacts,
    ApiOutcome,
    CommitFacts,
    LookupKind,
    PullRequestFacts,
    RepositoryFacts,
)
from codetaste.mining.github.connection import ReplyTooLarge, TransientFailure
from codetaste.mining.github.pacer import RequestStopped
from codetaste.mining.github.replies import (
    Count,
    Flag,
    Moment,
    Name,
    Oid,
    ReplyNode,
    Text,
    WrongReply,
    describe_wrong_reply,
)

if TYPE_CHECKING:
    from codetaste.mining.github.answer import Lookup
    from codetaste.mining.github.connection import ApiConnection, ApiReply

_TRIES = 2
_MISSING = frozenset({404, 409, 410, 422})
"""Not there, an empty repository, an issue that was removed, a hash that is not there."""
_FIRST_PAGE = 300
"""Files of a commit in one reply; a longer list goes on in the next, and is not counted."""


class RestAnswer(NamedTuple):
    """An answer and its ETag; ``unchanged`` if the ETag of the request still holds, then without facts."""

    answer: Answer
    etag: str = ""
    unchanged: bool = False


class _Node(ReplyNode):
    model_config = ConfigDict(alias_generator=None)


class _Licence(_Node):
    spdx_id: Text | None


class _Repository(_Node):
    full_name: Name
    stargazers_count: Count
    fork: Flag
    license: _Licence | None

    def facts(self) -> RepositoryFacts:
        licence = self.license.spdx_id if self.license else None
        return RepositoryFacts(
            name=self.full_name, stars=self.stargazers_count, licence=licence, fork=self.fork
        )


class _Base(_Node):
    repo: _Repository


class _PullRequest(_Node):
    number: Count
    title: Text
    body: Text | None
    merged: Flag
    merged_at: Moment | None
    merge_commit_sha: Oid | None
    base: _Base
    changed_files: Count
    additions: Count
    deletions: Count
    commits: Count


class _Signature(_Node):
    date: Moment | None = None


class _GitCommit(_Node):
    message: Text
    committer: _Signature | None
    author: _Signature | None = None


class _Stats(_Node):
    additions: Count
    deletions: Count


class _Commit(_Node):
    sha: Oid
    commit: _GitCommit
    stats: _Stats
    files: tuple[object, ...] | None = None


def can_rest(lookup: Lookup) -> bool:
    """Whether REST has the facts of ``lookup`` in one request."""
    return lookup.kind in {LookupKind.REPOSITORY, LookupKind.PULL_REQUEST, LookupKind.COMMIT}


async def ask_rest(connection: ApiConnection, lookup: Lookup, etag: str = "") -> RestAnswer:
    """Return the answer to ``lookup``, for which ``can_rest``; ``etag`` makes the request conditional.

    Raises:
        ConfigError: GitHub does not accept the token.
    """
    path = {
        LookupKind.REPOSITORY: f"/repos/{lookup.repository}",
        LookupKind.PULL_REQUEST: f"/repos/{lookup.repository}/pulls/{lookup.key}",
        LookupKind.COMMIT: f"/repos/{lookup.repository}/commits/{lookup.key}",
    }[lookup.kind]
    detail = ""
    for _ in range(_TRIES):
        try:
            reply = await connection.get(path, etag)
        except RequestStopped as stop:
            return RestAnswer(Answer(stop.outcome, detail=str(stop)))
        except ReplyTooLarge as error:
            return RestAnswer(Answer(ApiOutcome.UNAVAILABLE, detail=str(error)))
        except TransientFailure as error:
            detail = str(error)
        else:
            connection.pacer.note_success()
            return _read_reply(lookup, reply, conditional=bool(etag))
    return RestAnswer(Answer(ApiOutcome.UNAVAILABLE, detail=detail))


def _read_reply(lookup: Lookup, reply: ApiReply, *, conditional: bool) -> RestAnswer:
    if reply.status == HTTPStatus.NOT_MODIFIED and conditional:
        return RestAnswer(Answer(ApiOutcome.FOUND), reply.etag, unchanged=True)
    detail = reply.message or f"GitHub answered {reply.status}"
    if reply.status in _MISSING:
        # REST does not say whether the repository is missing, or the pull request or commit in it.
        gone = lookup.kind is LookupKind.REPOSITORY
        return RestAnswer(Answer(ApiOutcome.DELETED if gone else ApiOutcome.NOT_FOUND, detail=detail))
    if reply.status != HTTPStatus.OK:
        return RestAnswer(Answer(ApiOutcome.REFUSED, detail=detail))
    try:
        return RestAnswer(Answer(ApiOutcome.FOUND, _read_facts(lookup, reply.data)), reply.etag)
    except ValueError as error:
        return RestAnswer(Answer(ApiOutcome.MALFORMED, detail=describe_wrong_reply(error)))


def _read_facts(lookup: Lookup, data: object) -> ApiFacts:
    if lookup.kind is LookupKind.REPOSITORY:
        return _Repository.model_validate(data).facts()
    if lookup.kind is LookupKind.PULL_REQUEST:
        return _read_pull_request(lookup, _PullRequest.model_validate(data))
    return _read_commit(lookup, _Commit.model_validate(data))


def _read_pull_request(lookup: Lookup, node: _PullRequest) -> PullRequestFacts:
    if node.number != int(lookup.key):
        raise WrongReply(f"the answer is about pull request {node.number}")
    return PullRequestFacts(
        repository=node.base.repo.facts(),
        number=node.number,
        title=node.title,
        body=node.body or "",
        merged=node.merged,
        merged_at=node.merged_at,
        # Of a pull request that is not merged it is the commit of a trial merge.
        golden=node.merge_commit_sha if node.merged else None,
        files=node.changed_files,
        additions=node.additions,
        deletions=node.deletions,
        commits=node.commits,
        # REST does not have the size of the merge commit.
        maybe_rebased=False,
    )


def _read_commit(lookup: Lookup, node: _Commit) -> CommitFacts:
    if node.sha != lookup.key:
        raise WrongReply(f"the answer is about commit {node.sha}")
    dates = (each.date for each in (node.commit.committer, node.commit.author) if each)
    return CommitFacts(
        repository=None,
        hash=node.sha,
        message=node.commit.message,
        date=next(filter(None, dates), None),
        files=None if node.files is None or len(node.files) >= _FIRST_PAGE else len(node.files),
        additions=node.stats.additions,
        deletions=node.stats.deletions,
        pull_request=None,
    )
