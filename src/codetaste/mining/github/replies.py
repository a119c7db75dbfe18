"""The nodes of GraphQL replies as untrusted data, and the facts that they hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Generic, TypeVar

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from codetaste.core.text import one_line, replace_surrogates
from codetaste.mining.commit import PullRequest
from codetaste.mining.github.answer import (
    ApiFacts,
    CommitFacts,
    Issue,
    LookupKind,
    ParentFacts,
    PullRequestFacts,
    RepositoryFacts,
    TextFacts,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from codetaste.mining.github.answer import Lookup

_Node = TypeVar("_Node")

_MAX_COUNT = 2**53
_MAX_DETAIL = 200


Text = Annotated[str, BeforeValidator(replace_surrogates)]
Count = Annotated[int, Field(strict=True, ge=0, le=_MAX_COUNT)]
Oid = Annotated[str, Field(pattern=r"^[0-9a-f]{40}([0-9a-f]{24})?$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,100}/[A-Za-z0-9_.-]{1,100}$")]
Flag = Annotated[bool, Field(strict=True)]
Moment = Annotated[AwareDatetime, BeforeValidator(lambda value: value if isinstance(value, str) else None)]


class WrongReply(ValueError):
    """A reply is valid, but about something else than what was asked for."""


def describe_wrong_reply(error: ValueError) -> str:
    """Return in one line what is wrong with a reply, without its content."""
    if not isinstance(error, ValidationError):
        return one_line(error, _MAX_DETAIL)
    first = error.errors(include_url=False, include_input=False)[0]
    return one_line(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", _MAX_DETAIL)


class ReplyNode(BaseModel):
    """An object of a reply; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class _Nodes(ReplyNode, Generic[_Node]):
    nodes: tuple[_Node | None, ...] | None = None

    def present(self) -> Iterable[_Node]:
        """Yield the nodes that may be seen: GitHub answers null for those of private repositories."""
        return (node for node in self.nodes or () if node is not None)


class _Total(ReplyNode):
    total_count: Count


class _Licence(ReplyNode):
    spdx_id: Annotated[Text, Field(max_length=100)] | None


class _NamedRepository(ReplyNode):
    name_with_owner: Name


class _Repository(_NamedRepository):
    stargazer_count: Count
    is_fork: Flag
    license_info: _Licence | None

    def facts(self) -> RepositoryFacts:
        licence = self.license_info.spdx_id if self.license_info else None
        return RepositoryFacts(
            name=self.name_with_owner, stars=self.stargazer_count, licence=licence, fork=self.is_fork
        )


class _Oid(ReplyNode):
    oid: Oid


class _MergeCommit(_Oid):
    additions: Count
    deletions: Count


class _Texts(ReplyNode):
    number: Count
    title: Text
    body: Text

    def pull_request(self) -> PullRequest:
        return PullRequest(self.number, self.title, self.body)


class _PullRequest(_Texts):
    merged: Flag
    merged_at: Moment | None
    changed_files: Count
    additions: Count
    deletions: Count
    commits: _Total
    merge_commit: _MergeCommit | None


class _MergedBy(_Texts):
    merged: Flag
    merge_commit: _Oid | None
    repository: _NamedRepository | None


class _Commit(_Oid):
    message: Text
    committed_date: Moment
    changed_files_if_available: Count | None
    additions: Count
    deletions: Count
    associated_pull_requests: _Nodes[_MergedBy] | None


class _Authored(ReplyNode):
    authored_date: Moment


class _CommitOfPullRequest(ReplyNode):
    commit: _Authored


class _Ancestor(_Oid, _Authored):
    pass


class _History(ReplyNode):
    history: _Nodes[_Ancestor]


class _RebasedPullRequest(ReplyNode):
    number: Count
    commits: _Nodes[_CommitOfPullRequest]
    merge_commit: _History | None


class _Issue(_Texts):
    repository: _NamedRepository


class _PullRequestTexts(_Texts):
    merged: Flag
    closing_issues_references: _Nodes[_Issue] | None
    repository: _NamedRepository | None = None


class _CommitTexts(_Oid):
    associated_pull_requests: _Nodes[_PullRequestTexts] | None


def read_facts(lookup: Lookup, node: Any) -> ApiFacts:  # noqa: ANN401 - JSON data
    """Return the facts of ``lookup`` from the node of its repository, whose ``item`` is not null.

    Raises:
        ValueError: a field is missing or wrong, or the reply is about something else.
    """
    repository = _Repository.model_validate(node).facts()
    if lookup.kind is LookupKind.REPOSITORY:
        return repository
    return _READERS[lookup.kind](lookup, repository, node.get("item"))


def _read_pull_request(lookup: Lookup, repository: RepositoryFacts, item: object) -> ApiFacts:
    node = _PullRequest.model_validate(item)
    _check_number(lookup, node)
    commit = node.merge_commit if node.merged else None
    return PullRequestFacts(
        repository=repository,
        number=node.number,
        title=node.title,
        body=node.body,
        merged=node.merged,
        merged_at=node.merged_at,
        golden=commit.oid if commit else None,
        files=node.changed_files,
        additions=node.additions,
        deletions=node.deletions,
        commits=node.commits.total_count,
        maybe_rebased=commit is not None
        and node.commits.total_count > 1
        and (commit.additions, commit.deletions) != (node.additions, node.deletions),
    )


def _read_commit(lookup: Lookup, repository: RepositoryFacts, item: object) -> ApiFacts:
    node = _Commit.model_validate(item)
    _check_hash(lookup, node)
    found = node.associated_pull_requests.present() if node.associated_pull_requests else ()
    merged = (
        each
        for each in found
        if each.merged
        and each.merge_commit
        and each.merge_commit.oid == node.oid
        and _is_of(each.repository, repository)
    )
    first = next(merged, None)
    return CommitFacts(
        repository=repository,
        hash=node.oid,
        message=node.message,
        date=node.committed_date,
        files=node.changed_files_if_available,
        additions=node.additions,
        deletions=node.deletions,
        pull_request=first.pull_request() if first else None,
    )


def _read_parent(lookup: Lookup, _repository: RepositoryFacts, item: object) -> ApiFacts:
    node = _RebasedPullRequest.model_validate(item)
    _check_number(lookup, node)
    proposed = [each.commit.authored_date for each in node.commits.present()]
    history = list(node.merge_commit.history.present()) if node.merge_commit else []
    own, before = history[: len(proposed)], history[len(proposed) :]
    # A rebase gives commits new hashes, and keeps when they were written. The size of a squashed commit may
    # differ from that of its pull request, too; then the commits before it are others.
    rebased = bool(proposed) and proposed == [commit.authored_date for commit in reversed(own)]
    return ParentFacts(base=before[0].oid if rebased and before else None)


def _read_pull_request_texts(lookup: Lookup, _repository: RepositoryFacts, item: object) -> ApiFacts:
    node = _PullRequestTexts.model_validate(item)
    _check_number(lookup, node)
    return _text_facts([node])


def _read_commit_texts(lookup: Lookup, repository: RepositoryFacts, item: object) -> ApiFacts:
    node = _CommitTexts.model_validate(item)
    _check_hash(lookup, node)
    found = node.associated_pull_requests.present() if node.associated_pull_requests else ()
    return _text_facts([each for each in found if each.merged and _is_of(each.repository, repository)])


def _text_facts(nodes: list[_PullRequestTexts]) -> TextFacts:
    issues = {
        (issue.repository.name_with_owner, issue.number): Issue(
            repository=issue.repository.name_with_owner,
            number=issue.number,
            title=issue.title,
            body=issue.body,
        )
        for node in nodes
        if node.closing_issues_references
        for issue in node.closing_issues_references.present()
    }
    return TextFacts(
        pull_requests=tuple(node.pull_request() for node in nodes), issues=tuple(issues.values())
    )


def _is_of(named: _NamedRepository | None, repository: RepositoryFacts) -> bool:
    """Whether it belongs to ``repository``: pull requests of forks are associated with a commit, too."""
    return named is not None and named.name_with_owner.lower() == repository.name.lower()


def _check_number(lookup: Lookup, node: _Texts | _RebasedPullRequest) -> None:
    if node.number != int(lookup.key):
        raise WrongReply(f"the answer is about pull request {node.number}")


def _check_hash(lookup: Lookup, node: _Oid) -> None:
    if node.oid != lookup.key:
        raise WrongReply(f"the answer is about commit {node.oid}")


_READERS: dict[LookupKind, Callable[[Lookup, RepositoryFacts, object], ApiFacts]] = {
    LookupKind.PULL_REQUEST: _read_pull_request,
    LookupKind.COMMIT: _read_commit,
    LookupKind.PARENT: _read_parent,
    LookupKind.PULL_REQUEST_TEXTS: _read_pull_request_texts,
    LookupKind.COMMIT_TEXTS: _read_commit_texts,
}
