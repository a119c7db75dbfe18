"""Where R and R∘X* come from: two commits of a repository, or two releases of a package."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from anyio import from_thread, to_thread

from codetaste.errors import SourceError
from codetaste.source.archive import unpack
from codetaste.source.hidden import hidden_name
from codetaste.source.repository import Repository, checked_hash, fetch_commits, open_repository
from codetaste.source.sdist import fetch_sdist
from codetaste.source.tree import Tree, stored_tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|[^/:\s]+@[^/:\s]+:")
_SDIST = re.compile(
    r"sdist:([A-Za-z0-9][A-Za-z0-9._-]*)/([A-Za-z0-9][A-Za-z0-9.+!_-]*)/([A-Za-z0-9][A-Za-z0-9.+!_-]*)"
)
_SHA256 = re.compile(r"[0-9a-f]{64}")
FORGE = "https://github.com"
"""Where OWNER/REPO is cloned from when no local clone is configured."""


@dataclass(frozen=True, slots=True)
class GitOrigin:
    """Two commits, whole hashes, of the repository at ``location``: a path, or a https, ssh or file URL."""

    location: str
    base: str
    golden: str


@dataclass(frozen=True, slots=True)
class SdistOrigin:
    """Two released source distributions of a package, each with the sha256 (hex) of its archive."""

    package: str
    base_version: str
    golden_version: str
    base_sha256: str
    golden_sha256: str


Origin = GitOrigin | SdistOrigin


@dataclass(frozen=True, slots=True)
class Trees:
    """R and R∘X* as folders that must not be written to, with their ``tree_digest``."""

    base: Path
    golden: Path
    base_digest: str
    golden_digest: str


async def materialise(origin: Origin, cache: Path) -> Trees:
    """Bring both trees of ``origin`` to disk below ``cache``, or find them there.

    Nothing is asked of the network or of the clone when both are there. Safe to call many times at once, from
    many processes; when it is killed, the next call begins anew what was not whole.

    Raises:
        SourceError: they cannot be had; the message says why and what to do.
        UnsafeArchive: what came is hostile.
        StorageFull: no space left for them.
        ToolMissing: there is no git.
    """
    cache = await to_thread.run_sync(cache.absolute)
    if isinstance(origin, SdistOrigin):
        return await _both(
            lambda: _sdist_tree(origin.package, origin.base_version, origin.base_sha256, cache),
            lambda: _sdist_tree(origin.package, origin.golden_version, origin.golden_sha256, cache),
        )
    return await _both(
        lambda: _commit_tree(origin, origin.base, cache),
        lambda: _commit_tree(origin, origin.golden, cache),
    )


def parse_origin(
    text: str,
    *,
    owner: str,
    repo: str,
    base: str,
    golden: str,
    repos: Path | None = None,
    folder: Path | None = None,
) -> Origin:
    """Read the ``origin`` column of an instance.

    Args:
        text: "" (a clone below ``repos``, else the forge), a URL, a path, or ``sdist:PACKAGE/BASE/GOLDEN``.
        owner: of the repository.
        repo: its name.
        base: the base commit's hash, or the sha256 of the base release's archive.
        golden: the same of the golden one.
        repos: a folder of clones ``OWNER/REPO`` or ``OWNER/REPO.git``, bare or not, or links to them.
        folder: what a relative path is relative to.

    Raises:
        SourceError: it is malformed.
    """
    if text.startswith("sdist:"):
        parsed = _SDIST.fullmatch(text)
        if parsed is None:
            raise SourceError(f"origin {text!r}: expected sdist:PACKAGE/BASE-VERSION/GOLDEN-VERSION")
        if _SHA256.fullmatch(base) is None or _SHA256.fullmatch(golden) is None:
            raise SourceError(
                f"origin {text!r}: its hashes are the archives' sha256, 64 lower-case hex digits"
            )
        return SdistOrigin(parsed[1], parsed[2], parsed[3], base, golden)
    if not text:
        return GitOrigin(_usual_place(owner, repo, repos), base, golden)
    if text.startswith("-") or "::" in text or "\0" in text:
        raise SourceError(f"origin {text!r}: expected a URL, a path, or sdist:PACKAGE/BASE/GOLDEN")
    if _URL.match(text) or folder is None:
        return GitOrigin(text, base, golden)
    return GitOrigin(str(folder / Path(text).expanduser()), base, golden)


def _usual_place(owner: str, repo: str, repos: Path | None) -> str:
    if repos is not None:
        for name in (repo, f"{repo}.git"):
            clone = repos / owner / name
            if clone.is_dir():
                return str(clone)
    return f"{FORGE}/{owner}/{repo}"


async def _both(base: Callable[[], Awaitable[Tree]], golden: Callable[[], Awaitable[Tree]]) -> Trees:
    """Make both, one after the other: they mostly wait for the same clone, disk or index."""
    first, second = await base(), await golden()
    return Trees(first.path, second.path, first.digest, second.digest)


async def _commit_tree(origin: GitOrigin, commit: str, cache: Path) -> Tree:
    checked_hash(commit)

    async def fill(into: Path) -> None:
        repository = await _repository(origin, cache)
        await repository.export(commit, into)

    return await _stored(cache, f"git-{commit}", fill)


async def _repository(origin: GitOrigin, cache: Path) -> Repository:
    location = origin.location
    if location.lower().startswith("file://"):
        return await open_repository(Path(unquote(urlsplit(location).path)))
    if _URL.match(location):
        return await fetch_commits(location, (origin.base, origin.golden), cache)
    return await open_repository(Path(location))


async def _sdist_tree(package: str, version: str, sha256: str, cache: Path) -> Tree:
    async def fill(into: Path) -> None:
        archive = await fetch_sdist(package, version, sha256, cache)
        label = f"{package} {version}"
        await to_thread.run_sync(
            lambda: unpack(archive, into, label=label, check=from_thread.check_cancelled)
        )

    return await _stored(cache, f"sdist-{sha256}", fill)


async def _stored(cache: Path, key: str, fill: Callable[[Path], Awaitable[None]]) -> Tree:
    """Keep each tree where nobody can tell from one tree's place where another is."""
    return await stored_tree(cache, await to_thread.run_sync(hidden_name, cache, key), fill)
