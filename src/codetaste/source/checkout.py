"""Bring both trees of an instance, R and R∘X*, to disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from anyio import from_thread, to_thread

from codetaste.source.archive import unpack_archive
from codetaste.source.origin import URL_PATTERN, GitOrigin, Origin, SdistOrigin
from codetaste.source.repository import fetch_commits, open_repository, validate_commit_hash
from codetaste.source.sdist import fetch_sdist
from codetaste.source.tree.opaque_names import opaque_name
from codetaste.source.tree.store import Tree, cached_tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.source.repository import Repository


@dataclass(frozen=True, slots=True)
class Trees:
    """R and R∘X* as read-only folders, with their ``tree_digest``."""

    base: Path
    golden: Path
    base_digest: str
    golden_digest: str


async def checkout_trees(origin: Origin, cache: Path) -> Trees:
    """Return both trees of ``origin``, written below ``cache`` unless they are there already.

    If both are in the cache, neither the network nor the clone is read. Safe to call from many tasks and
    processes at once; after a kill, the next call starts incomplete trees again.

    Raises:
        SourceError: the trees cannot be read; the message says why and what to do.
        UnsafeArchive: an archive or commit holds a dangerous member.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    cache = await to_thread.run_sync(cache.absolute)
    # One tree after the other: both mostly wait for the same clone, disk or index.
    if isinstance(origin, SdistOrigin):
        base = await _sdist_tree(origin.package, origin.base_version, origin.base_sha256, cache)
        golden = await _sdist_tree(origin.package, origin.golden_version, origin.golden_sha256, cache)
    else:
        base = await _commit_tree(origin, origin.base, cache)
        golden = await _commit_tree(origin, origin.golden, cache)
    return Trees(base.path, golden.path, base.digest, golden.digest)


async def open_origin(origin: GitOrigin, cache: Path) -> Repository:
    """Open the repository of ``origin``: the clone it names, or what was fetched of it into ``cache``.

    Raises:
        SourceError: there is no repository, or it cannot be reached.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    location = origin.location
    if location.lower().startswith("file://"):
        return await open_repository(Path(unquote(urlsplit(location).path)))
    if URL_PATTERN.match(location):
        return await fetch_commits(location, (origin.base, origin.golden), cache)
    return await open_repository(Path(location))


async def _commit_tree(origin: GitOrigin, commit: str, cache: Path) -> Tree:
    validate_commit_hash(commit)

    async def fill(into: Path) -> None:
        repository = await open_origin(origin, cache)
        await repository.export(commit, into)

    return await _stored(cache, f"git-{commit}", fill)


async def _sdist_tree(package: str, version: str, sha256: str, cache: Path) -> Tree:
    async def fill(into: Path) -> None:
        archive = await fetch_sdist(package, version, sha256, cache)
        label = f"{package} {version}"
        await to_thread.run_sync(
            lambda: unpack_archive(archive, into, label=label, check=from_thread.check_cancelled)
        )

    return await _stored(cache, f"sdist-{sha256}", fill)


async def _stored(cache: Path, key: str, fill: Callable[[Path], Awaitable[None]]) -> Tree:
    """Store the tree under a name that reveals nothing about the path of any other tree."""
    return await cached_tree(cache, await to_thread.run_sync(opaque_name, cache, key), fill)
