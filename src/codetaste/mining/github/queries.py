"""GraphQL queries: many lookups of one kind in one request, as many as GitHub answers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import anyio

from codetaste.mining.github.answer import MAX_HISTORY, LookupKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.mining.github.answer import Lookup

MAX_LINKED = 10
"""Issues of a pull request, and pull requests of a commit, that are read."""

_FIRST_SIZE = 40
_PATIENCE = 40
"""Full batches that pass before twice as many lookups are tried; after that failed, four times as many."""

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


class BatchSize:
    """How many lookups of a kind one request may have, learned from all requests of a client.

    Attributes:
        size: the number.
        slots: what requests wait for. While no request of this size has passed, one at a time tries it.
    """

    def __init__(self, kind: LookupKind, most: int) -> None:
        self._most = min(most, _SHAPES[kind].most)
        self.size = min(self._most, _FIRST_SIZE)
        self.slots = anyio.CapacityLimiter(1)
        self._passed = self._full = 0
        self._patience = _PATIENCE

    def note(self, count: int, *, passed: bool) -> None:
        """Record whether GitHub answered a request for ``count`` lookups."""
        if passed:
            if 0 < self._passed < self.size <= count:
                self._patience = _PATIENCE
            self._passed = max(self._passed, count)
            self._full += count >= self.size
            if self._full >= self._patience and self.size < self._most:
                self.size, self._full = min(self._most, 2 * self.size), 0
        elif self._passed < count <= self.size:
            self._patience *= 4 if 2 * self._passed == self.size else 1
            self.size, self._passed, self._full = max(1, count // 2), 0, 0
        elif count == self.size:
            # It passed before: one of the lookups may be to blame. If it fails again, it is the size.
            self._passed = count - 1
        self.slots.total_tokens = math.inf if self._passed >= self.size else 1


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
