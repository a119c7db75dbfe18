"""Git repositories from which trees are exported: a clone on disk, or cached commits of a URL.

Trees are read from git's objects and never checked out. Attributes, filters, line endings and submodules play
no role, so a tree is exactly what was committed.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

from anyio import from_thread, to_thread

from codetaste.core.files import locked
from codetaste.errors import SourceError
from codetaste.source.git import run_git
from codetaste.source.tree.export import MissingObject, export_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.source.git import GitResult

_HASH = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_FETCH_TIMEOUT_S = 900.0
_MISSING_REF = ("not our ref", "no such remote ref", "couldn't find remote ref")
_NO_FETCH_BY_HASH = ("unadvertised object", "shallow capabilities", "does not support", "not supported")


@dataclass(frozen=True, slots=True)
class Repository:
    """A git repository on disk. ``label`` names it in messages: a path, or a URL without its password."""

    git_dir: Path
    label: str

    async def has_commit(self, commit: str) -> bool:
        """True when the repository has the commit object."""
        found = await run_git("cat-file", "-t", commit, git_dir=self.git_dir)
        return found.ok and found.output.strip() == b"commit"

    async def export(self, commit: str, into: Path) -> None:
        """Write the tree of ``commit`` to the new folder ``into``, exactly as it was committed.

        Raises:
            UnsafeArchive: the tree has a name that would leave the folder or create a git directory.
            SourceError: the commit or one of its objects is missing.
            StorageFull: no space left.
        """
        if not await self.has_commit(commit):
            raise SourceError(f"{self.label} has no commit {commit}; {await self._fix_hint()}")
        listing = await run_git("ls-tree", "-r", "-z", "--full-tree", commit, git_dir=self.git_dir)
        if not listing.ok:
            raise SourceError(
                f"{self.label}: the tree of {commit[:12]} is incomplete; {await self._fix_hint()}"
            )
        label = f"{self.label} at {commit[:8]}"
        try:
            await to_thread.run_sync(
                export_tree, self.git_dir, listing.output, into, label, from_thread.check_cancelled
            )
        except MissingObject as error:
            raise SourceError(f"{error}; {await self._fix_hint()}") from None

    async def _fix_hint(self) -> str:
        shallow = await run_git("rev-parse", "--is-shallow-repository", git_dir=self.git_dir)
        if shallow.output.strip() == b"true":
            return f"it is a shallow clone: git -C {self.label} fetch --unshallow"
        keys = r"^(extensions\.partialclone|remote\..*\.promisor)$"
        partial = await run_git("config", "--get-regexp", keys, git_dir=self.git_dir)
        if partial.output.strip():
            command = f"git -C {self.label} fetch --refetch --no-filter"
            return f"it is a partial clone: {command} (git 2.36 or later)"
        return f"bring the clone up to date: git -C {self.label} fetch --all --tags"


def validate_commit_hash(commit: str) -> str:
    """Return ``commit`` if it is a full object hash.

    Raises:
        SourceError: it is not; git could read it as an option or a revision expression.
    """
    if _HASH.fullmatch(commit) is None:
        raise SourceError(f"{commit!r} is not a full commit hash (40 or 64 lower-case hex digits)")
    return commit


def url_without_credentials(url: str) -> str:
    """Return ``url`` without user name and password, for messages."""
    split = urlsplit(url)
    if not split.netloc or "@" not in split.netloc:
        return url
    return urlunsplit(split._replace(netloc=split.netloc.rpartition("@")[2]))


async def open_repository(path: Path) -> Repository:
    """Open the clone at ``path``: bare, a work tree, or a link to one; parent folders are not searched.

    Raises:
        SourceError: ``path`` is not a repository.
        ToolMissing: git is not installed.
    """
    place = str(path)
    resolved = await to_thread.run_sync(path.resolve)
    if not await to_thread.run_sync(resolved.is_dir):
        raise SourceError(f"{place}: no such folder; clone the repository there, or name another place")
    for candidate in (resolved / ".git", resolved):
        found = await run_git("rev-parse", "--resolve-git-dir", str(candidate))
        if found.ok:
            git_dir = Path(found.output.removesuffix(b"\n").decode("utf-8", "surrogateescape"))
            return Repository(resolved / git_dir, place)
    raise SourceError(f"{place} is not a git repository (no clone, bare or not)")


async def fetch_commits(
    url: str, commits: Sequence[str], cache: Path, *, timeout_s: float = _FETCH_TIMEOUT_S
) -> Repository:
    """Bring ``commits`` of the repository at ``url`` into a bare repository of the cache, and open it.

    Only the trees of these commits are fetched if the server serves commits by hash, otherwise the whole
    repository. Commits in the cache are not fetched again. Safe for many tasks and processes at once.

    Raises:
        SourceError: no answer, no such repository, no such commit, or ``timeout_s`` seconds have passed.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    for commit in commits:
        validate_commit_hash(commit)
    if url.startswith("-"):
        raise SourceError(f"{url!r} is not a URL")
    key = hashlib.sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:24]
    git_dir = await to_thread.run_sync((cache / "git" / f"{key}.git").absolute)
    repository = Repository(git_dir, url_without_credentials(url))
    async with locked(cache / "locks" / f"git-{key}.lock"):
        missing = [commit for commit in commits if not await _is_fetched(repository, commit)]
        if missing:
            await _fetch(url, missing, repository, timeout_s)
    return repository


async def _is_fetched(repository: Repository, commit: str) -> bool:
    """True when ``commit`` was fetched completely: its ref is set last."""
    if not await to_thread.run_sync(repository.git_dir.is_dir):
        return False
    ref = await run_git(
        "rev-parse", "--verify", "--quiet", f"refs/fetched/{commit}^{{tree}}", git_dir=repository.git_dir
    )
    return ref.ok


async def _fetch(url: str, commits: Sequence[str], repository: Repository, timeout_s: float) -> None:
    await to_thread.run_sync(_unlock, repository.git_dir)
    form = "sha256" if len(commits[0]) == 64 else "sha1"  # noqa: PLR2004 - hex digits of the two hashes
    made = await run_git(
        "init", "--quiet", "--bare", "--template=", f"--object-format={form}", str(repository.git_dir)
    )
    if not made.ok:
        raise SourceError(f"cannot make a repository in the cache: {_reason(made.stderr)}")
    options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
    wanted = [f"+{commit}:refs/fetched/{commit}" for commit in commits]

    async def fetch(*args: str) -> GitResult:
        return await run_git(
            "fetch", *options, *args, git_dir=repository.git_dir, network=True, timeout_s=timeout_s
        )

    near = await fetch("--depth=1", "--", url, *wanted)
    if near.ok:
        return
    if not any(phrase in near.stderr for phrase in _NO_FETCH_BY_HASH):
        raise _unreachable(repository, commits, near.stderr.replace(url, repository.label))
    whole = await fetch("--", url, "+refs/*:refs/all/*")
    if not whole.ok:
        raise _unreachable(repository, commits, whole.stderr.replace(url, repository.label))
    for commit in commits:
        if not await repository.has_commit(commit):
            raise SourceError(f"{repository.label} has no commit {commit} reachable from a branch or tag")
        await run_git("update-ref", f"refs/fetched/{commit}", commit, git_dir=repository.git_dir)


def _unlock(git_dir: Path) -> None:
    """Remove lock files left by a killed git; our own lock is taken, so no other git is running here."""
    for lock in git_dir.rglob("*.lock"):
        lock.unlink(missing_ok=True)


def _unreachable(repository: Repository, commits: Sequence[str], complaint: str) -> SourceError:
    reason = _reason(complaint)
    if any(phrase in complaint for phrase in _MISSING_REF):
        named = next((commit for commit in commits if commit in complaint), commits[0])
        return SourceError(f"{repository.label} has no commit {named} ({reason})")
    return SourceError(
        f"{repository.label} cannot be fetched: {reason}; check the address, or use a local clone"
    )


def _reason(complaint: str) -> str:
    """Return the line of git's error output that names the fault."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return (telling or lines or ["git gave no reason"])[0]
