"""Find a commit that is known only by its hash: in a folder of clones, or by a shallow fetch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from anyio import to_thread

from codetaste.errors import SourceError
from codetaste.mining.clones.clone import find_clone, open_clone
from codetaste.mining.clones.git.commit_object import parse_commit
from codetaste.mining.prefilter.unreachable import Unreachable, UnreachableReason
from codetaste.source.git import run_git
from codetaste.source.origin import FORGE
from codetaste.source.repository import Repository, fetch_commits, validate_commit_hash

if TYPE_CHECKING:
    from pathlib import Path

    from codetaste.mining.clones.clone import Clone
    from codetaste.mining.commit import CommitRecord

_NO_COMMIT = ("has no commit",)
_NO_REPOSITORY = (
    *("not found", "does not exist", "does not appear to be a git repository", "no such folder"),
    *("could not read username", "authentication failed", "invalid credentials", "permission denied"),
    *(
        "access denied",
        "returned error: 401",
        "returned error: 403",
        "returned error: 404",
        "terminal prompts",
    ),
    *("returned error: 410", "returned error: 451", "repository access blocked", "not a git repository"),
)
"""What servers say, in lower case, if a repository was deleted, renamed or made private."""


@dataclass(frozen=True, slots=True)
class CommitPlaces:
    """Where commits are looked for.

    Attributes:
        clones: a folder of clones ``OWNER/REPO``, or None.
        cache: the folder that gets fetched commits; None fetches nothing.
        forge: address of the server that has ``OWNER/REPO``.
    """

    clones: Path | None = None
    cache: Path | None = None
    forge: str = FORGE


@dataclass(frozen=True, slots=True)
class ResolvedCommit:
    """A commit and its parent in a repository on this machine.

    Attributes:
        record: the commit.
        git_dir: of the repository that has both.
        label: the repository in messages.
        base: hash of R.
        golden: hash of R∘X*.
    """

    record: CommitRecord
    git_dir: Path
    label: str
    base: str
    golden: str


async def find_local_clone(repository: str, places: CommitPlaces) -> Clone | None:
    """Open the clone of ``OWNER/REPO`` in the folder of clones; None if there is none that can be read.

    Raises:
        ToolMissing: git is not installed.
    """
    path = None if places.clones is None else await to_thread.run_sync(find_clone, places.clones, repository)
    if path is None:
        return None
    try:
        return await open_clone(path, repository)
    except SourceError:
        return None


async def resolve_in_clone(record: CommitRecord, clone: Clone) -> ResolvedCommit | Unreachable:
    """Find ``record`` with its base in a clone: its first parent, unless the record names one.

    Raises:
        ToolMissing: git is not installed.
    """
    return await _resolve_in(Repository(clone.git_dir, clone.label), record, f"; {clone.hint}")


async def fetch_commit(record: CommitRecord, places: CommitPlaces) -> ResolvedCommit | Unreachable:
    """Fetch both commits without their history, unless they are in the cache.

    Raises:
        ToolMissing: git is not installed.
        StorageFull: no space left in the cache.
    """
    if places.cache is None:
        where = f" in {places.clones}" if places.clones else ""
        detail = f"no clone of {record.repository}{where}, and nothing may be fetched"
        return Unreachable(record, UnreachableReason.NO_CLONE, detail)
    url = f"{places.forge.rstrip('/')}/{record.repository}"
    try:
        wanted = [record.golden, *([record.base] if record.base else [])]
        repository = await fetch_commits(url, wanted, places.cache)
        parent = await _first_parent(repository, record.golden)
        if record.base is None and parent is not None:
            repository = await fetch_commits(url, [parent, record.golden], places.cache)
    except SourceError as error:
        return Unreachable(record, _reason(str(error)), str(error))
    return await _resolve_in(repository, record, "")


def check_hashes(record: CommitRecord) -> Unreachable | None:
    """Return what is wrong with the hashes of a record; None if they are full hashes."""
    try:
        for commit in (record.golden, record.base or record.golden):
            validate_commit_hash(commit)
    except SourceError as error:
        return Unreachable(record, UnreachableReason.NO_COMMIT, str(error))
    return None


async def _resolve_in(
    repository: Repository, record: CommitRecord, hint: str
) -> ResolvedCommit | Unreachable:
    """Find both commits in a repository, without the network."""
    if not await repository.has_commit(record.golden):
        detail = f"{repository.label} has no commit {record.golden}{hint}"
        return Unreachable(record, UnreachableReason.NO_COMMIT, detail)
    base = record.base or await _first_parent(repository, record.golden)
    if base is None:
        detail = f"{record.name} has no parent, so there is no code before it"
        return Unreachable(record, UnreachableReason.NO_PARENT, detail)
    if not await repository.has_commit(base):
        detail = f"{repository.label} has no commit {base}, the parent of {record.golden[:10]}{hint}"
        return Unreachable(record, UnreachableReason.NO_COMMIT, detail)
    return ResolvedCommit(record, repository.git_dir, repository.label, base, record.golden)


async def _first_parent(repository: Repository, commit: str) -> str | None:
    """Return the parent that the commit names, whether or not the repository has it."""
    content = await run_git("cat-file", "commit", commit, git_dir=repository.git_dir)
    return next(iter(parse_commit(content.output).parents), None)


def _reason(complaint: str) -> UnreachableReason:
    """Return what the message of a failed fetch means; what is not known may be there later."""
    lower = complaint.lower()
    if any(phrase in lower for phrase in _NO_COMMIT):
        return UnreachableReason.NO_COMMIT
    if any(phrase in lower for phrase in _NO_REPOSITORY):
        return UnreachableReason.NO_REPOSITORY
    return UnreachableReason.NO_ANSWER
