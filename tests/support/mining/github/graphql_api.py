"""GitHub's GraphQL over the made-up world: executed by graphql-core, with errors in GitHub's form."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from graphql import (
    DocumentNode,
    ExecutionResult,
    GraphQLError,
    build_schema,
    execute_sync,
    parse,
    validate,
    visit,
)
from graphql.language import FieldNode, Visitor

from support.mining.github.world import Commit, Issue, PullRequest, Repository, World

SCHEMA = build_schema((Path(__file__).parent / "schema.graphql").read_text("utf-8"))
SCHEMA.get_type("GitObject").resolve_type = lambda value, *_: value["__typename"]  # type: ignore[union-attr]

Node = dict[str, Any]


class TypedError(GraphQLError):
    """An error with the ``type`` that GitHub puts beside the message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message, extensions={"type": kind})


def run_query(world: World, body: dict[str, Any], limit: Node) -> Node:
    """Return the whole reply to a request."""
    document, problems = read_query(body["query"])
    done = (
        ExecutionResult(None, problems)
        if problems
        else execute_sync(SCHEMA, document, Root(world, limit), variable_values=body.get("variables"))
    )
    reply: Node = {} if done.data is None else {"data": done.data}
    if done.errors:
        own = [error.original_error for error in done.errors]
        assert all(error is None or isinstance(error, TypedError) for error in own), own
        reply["errors"] = [format_error(error, has_data=done.data is not None) for error in done.errors]
    return reply


@cache
def read_query(query: str) -> tuple[DocumentNode, list[GraphQLError]]:
    """Return a parsed query and what is wrong with it; batches of one size have the same text."""
    document = parse(query)
    return document, validate(SCHEMA, document)


def format_error(error: GraphQLError, *, has_data: bool) -> Node:
    kind = (error.extensions or {}).get("type")
    shown: Node = {"type": kind} if kind else {}
    if not has_data:
        shown["extensions"] = {"code": "undefinedField"}
    if error.path:
        shown["path"] = error.path
    where = [{"line": at.line, "column": at.column} for at in error.locations or ()]
    return {**shown, "locations": where, "message": error.message}


def points(query: str, variables: dict[str, Any]) -> int:
    """Return the cost of a query: requests for connections, divided by 100."""
    batch = sum(name.startswith("o") for name in variables)
    return max(1, round(_connections(query) * batch / 100))


@cache
def _connections(query: str) -> int:
    connections = {"commits", "history", "closingIssuesReferences", "associatedPullRequests"}
    found = 0

    class Count(Visitor):
        def enter_field(self, node: FieldNode, *_: Any) -> None:
            nonlocal found
            found += node.name.value in connections

    visit(read_query(query)[0], Count())
    return found


class Root:
    """The resolvers of the query type."""

    def __init__(self, world: World, limit: Node) -> None:
        self.world, self.limit = world, limit

    def repository(self, _info: Any, owner: str, name: str, followRenames: bool = True) -> Node:  # noqa: N803
        found = self.world.find(f"{owner}/{name}")
        if found is None or (not followRenames and found.name.lower() != f"{owner}/{name}".lower()):
            raise TypedError(
                "NOT_FOUND", f"Could not resolve to a Repository with the name '{owner}/{name}'."
            )
        if found.forbidden:
            raise TypedError("FORBIDDEN", found.forbidden)
        return repository_node(self.world, found)

    def rateLimit(self, _info: Any, **_arguments: Any) -> Node:  # noqa: N802
        return self.limit


def connection(nodes: list[Any]) -> Node:
    return {"nodes": nodes, "totalCount": len(nodes)}


def repository_node(world: World, repository: Repository) -> Node:
    def pull_request(_info: Any, number: int) -> Node:
        pull = repository.pulls.get(number)
        if pull is None:
            raise TypedError("NOT_FOUND", f"Could not resolve to a PullRequest with the number of {number}.")
        if pull.fault:
            raise TypedError(pull.fault, f"{pull.fault}: something went wrong while executing your query.")
        return pull_node(world, repository, pull)

    def git_object(_info: Any, oid: str) -> Node | None:
        if oid in repository.tags:
            return {"__typename": "Tag", "oid": oid, "name": "v1"}
        commit = world.commit(repository, oid)
        return commit_node(world, repository, commit) if commit else None

    return {
        "nameWithOwner": repository.name,
        "stargazerCount": repository.stars,
        "isFork": repository.fork,
        "licenseInfo": {"key": "x", "spdxId": repository.licence} if repository.licence else None,
        "pullRequest": pull_request,
        "object": git_object,
    }


def commit_node(world: World, repository: Repository, commit: Commit) -> Node:
    def associated(_info: Any, first: int) -> Node:
        pulls = [pull for pull in repository.pulls.values() if commit.oid in {pull.merged_by, *pull.commits}]
        return connection([pull_node(world, repository, pull) for pull in pulls[:first]])

    def history(_info: Any, first: int) -> Node:
        line = list(repository.history(commit.oid))[:first]
        return connection([commit_node(world, repository, each) for each in line])

    return {
        "__typename": "Commit",
        "oid": commit.oid,
        "message": commit.message,
        "authoredDate": commit.authored,
        "committedDate": commit.date,
        "additions": commit.additions,
        "deletions": commit.deletions,
        "changedFilesIfAvailable": commit.files,
        "associatedPullRequests": associated,
        "history": history,
    }


def pull_node(world: World, repository: Repository, pull: PullRequest) -> Node:
    def merge_commit(*_: Any) -> Node | None:
        commit = repository.commits.get(pull.merged_by or "")
        return commit_node(world, repository, commit) if commit else None

    def commits(_info: Any, first: int | None = None) -> Node:
        found = [world.detached.get(each) or Commit(each) for each in pull.commits][: first or None]
        return connection([{"commit": commit_node(world, repository, each)} for each in found])

    def issue_node(issue: Issue) -> Node | None:
        if not issue.visible:
            return None
        home = world.find(issue.repository) or repository
        return {
            "number": issue.number,
            "title": issue.title,
            "body": issue.body,
            "repository": {"nameWithOwner": home.name},
        }

    return {
        "number": pull.number,
        "title": pull.title,
        "body": pull.body,
        "merged": pull.merged,
        "mergedAt": "2025-11-01T12:00:05Z" if pull.merged else None,
        "mergeCommit": merge_commit,
        "baseRefOid": "b" * 40,
        "changedFiles": pull.files,
        "additions": pull.additions,
        "deletions": pull.deletions,
        "repository": lambda *_: {"nameWithOwner": repository.name},
        "commits": commits,
        "closingIssuesReferences": lambda _info, first: connection(
            [issue_node(issue) for issue in pull.issues[:first]]
        ),
    }
