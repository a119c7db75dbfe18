"""What a made-up GitHub has: repositories with commits, pull requests and issues; renamed repositories."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field


def oid(name: object) -> str:
    """Return the hash of a made-up commit."""
    return hashlib.sha1(str(name).encode()).hexdigest()


@dataclass
class Commit:
    oid: str
    message: str = "a commit"
    parents: list[str] = field(default_factory=list)
    date: str = "2025-11-01T12:00:00Z"
    authored: str = "2025-10-30T08:00:00Z"
    additions: int = 1200
    deletions: int = 900
    files: int | None = 60


@dataclass
class Issue:
    number: int
    title: str = "an issue"
    body: str = "it hurts"
    repository: str = ""
    visible: bool = True


@dataclass
class PullRequest:
    number: int
    title: str = "Refactor the scheduler"
    body: str = "Splits it into modules."
    merged_by: str | None = None
    merged: bool = True
    commits: list[str] = field(default_factory=list)
    files: int = 60
    additions: int = 1200
    deletions: int = 900
    issues: list[Issue] = field(default_factory=list)
    fault: str = ""
    """The type of the error that GraphQL answers for it, such as INTERNAL; REST knows it."""


@dataclass
class Repository:
    name: str
    stars: int = 1000
    licence: str | None = "MIT"
    fork: bool = False
    commits: dict[str, Commit] = field(default_factory=dict)
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    tags: set[str] = field(default_factory=set)
    forbidden: str = ""
    """Why access is refused; "" if it is not."""

    def add_commit(self, name: object, **facts: object) -> Commit:
        """Add a commit on top of the last one."""
        last = list(self.commits)[-1:]
        commit = Commit(oid(f"{self.name} {name}"), parents=last, **facts)  # type: ignore[arg-type]
        self.commits[commit.oid] = commit
        return commit

    def add_merged(self, number: int, **facts: object) -> PullRequest:
        """Add a pull request that was merged by squashing."""
        if not self.commits:
            self.add_commit("root")
        commit = self.add_commit(f"merge {number}", message=f"Refactor (#{number})")
        own = [oid(f"{self.name} branch {number}")]
        pull = PullRequest(number, merged_by=commit.oid, commits=own, **facts)  # type: ignore[arg-type]
        self.pulls[number] = pull
        return pull

    def history(self, tip: str) -> Iterator[Commit]:
        """Yield ``tip`` and its first parents."""
        at: str | None = tip
        while at in self.commits:
            commit = self.commits[at]
            yield commit
            at = commit.parents[0] if commit.parents else None


@dataclass
class World:
    repositories: dict[str, Repository] = field(default_factory=dict)
    renames: dict[str, str] = field(default_factory=dict)
    """Present name of each former one."""
    detached: dict[str, Commit] = field(default_factory=dict)
    """Commits of branches, by hash."""

    def add(self, name: str, **facts: object) -> Repository:
        """Add a repository."""
        self.repositories[name.lower()] = repository = Repository(name, **facts)  # type: ignore[arg-type]
        return repository

    def find(self, name: str) -> Repository | None:
        """Return the repository of a name, former ones included; case does not matter."""
        present = self.renames.get(name.lower(), name)
        return self.repositories.get(present.lower())

    def commit(self, repository: Repository, hash_: str) -> Commit | None:
        """Return a commit of the default branch or of a pull request."""
        return repository.commits.get(hash_) or self.detached.get(hash_)
