"""GraphQL queries: many lookups of one kind in one request."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from codetaste.mining.github.answer import MAX_HISTORY, LookupKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.github.answer import Lookup

MAX_LINKED = 10
"""Issues of a pull request, and pull requests of a commit, that are read."""

_REPOSITORY = "fragment R on Repository{nameWithOwner stargazerCount isFork licenseInfo{spdxId}}"
_PULL_REQUEST = (
    "fragment P on PullRequest{number title body merged mergedAt changedFiles additions deletions "
    "commits{totalCount} mergeCommit{oid additions deletions}}"
)
_COMMIT = (
    "fragment P on Commit{oid message committedDate changedFilesIfAvailable additions deletions "
    f"associatedPullRequests(first:{MAX_LINKED})"
    "{nodes{number title body merged mergeCommit{oid} repository{nameWithOwner}}}}"
)
_PARENT = (
    f"fragment P on PullRequest{{number commits(first:{MAX_HISTORY}){{nodes{{commit{{authoredDate}}}}}} "
    f"mergeCommit{{history(first:{MAX_HISTORY + 1}){{nodes{{oid authoredDate}}}}}}}}"
)
_ISSUES = (
    f"closingIssuesReferences(first:{MAX_LINKED}){{nodes{{number title body repository{{nameWithOwner}}}}}}"
)
_PULL_REQUEST_TEXTS = f"fragment P on PullRequest{{number title body merged {_ISSUES}}}"
_COMMIT_TEXTS = (
    f"fragment P on Commit{{oid associatedPullRequests(first:{MAX_LINKED})"
    f"{{nodes{{number title body merged repository{{nameWithOwner}} {_ISSUES}}}}}}}"
)

_BY_NUMBER, _BY_HASH = "pullRequest(number:$k{0}){{...P}}", "object(oid:$k{0}){{__typename ...P}}"


class _Shape(NamedTuple):
    """How a kind is asked for: its fragment, its selection, the type of its key, how many at most at once."""

    fragment: str = ""
    item: str = ""
    key_type: str = ""
    most: int = 100


_SHAPES = {
    LookupKind.REPOSITORY: _Shape(),
    LookupKind.PULL_REQUEST: _Shape(_PULL_REQUEST, _BY_NUMBER, "Int!"),
    LookupKind.COMMIT: _Shape(_COMMIT, _BY_HASH, "GitObjectID!"),
    LookupKind.PARENT: _Shape(_PARENT, _BY_NUMBER, "Int!", 20),
    LookupKind.PULL_REQUEST_TEXTS: _Shape(_PULL_REQUEST_TEXTS, _BY_NUMBER, "Int!", 20),
    LookupKind.COMMIT_TEXTS: _Shape(_COMMIT_TEXTS, _BY_HASH, "GitObjectID!", 10),
}


class GraphQLQuery(NamedTuple):
    """A document and the values of its variables."""

    document: str
    variables: dict[str, str | int]


def batch_size(kind: LookupKind, most: int) -> int:
    """Return how many lookups of ``kind`` fit into one request, at most ``most``."""
    return min(most, _SHAPES[kind].most)


def build_query(lookups: Sequence[Lookup]) -> GraphQLQuery:
    """Return the query for ``lookups``, all of one kind and valid; number n is answered as ``x<n>``."""
    shape = _SHAPES[lookups[0].kind]
    variables: dict[str, str | int] = {}
    declared, selected = [], []
    for number, lookup in enumerate(lookups):
        owner, _, name = lookup.repository.partition("/")
        variables |= {f"o{number}": owner, f"n{number}": name}
        declared.append(f"$o{number}:String!,$n{number}:String!")
        item = ""
        if shape.item:
            variables[f"k{number}"] = int(lookup.key) if shape.key_type == "Int!" else lookup.key
            declared.append(f"$k{number}:{shape.key_type}")
            item = f" item:{shape.item.format(number)}"
        selected.append(f"x{number}:repository(owner:$o{number},name:$n{number}){{...R{item}}}")
    document = "\n".join(
        [
            f"query({','.join(declared)}){{",
            *selected,
            "rateLimit{cost remaining resetAt}",
            "}",
            _REPOSITORY,
            shape.fragment,
        ]
    )
    return GraphQLQuery(document, variables)
