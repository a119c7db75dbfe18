"""The stored jars: fetched once into the cache folder, verified when they are put there.

The layout is that of a Maven repository, so that sets share jars. A set is complete when its file in
``complete/`` names the digest of its table.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.concurrency import gather
from codetaste.core.files import locked, storage_error, write_atomically
from codetaste.core.hashing import file_sha256, json_digest
from codetaste.errors import SourceError, ToolMissing
from codetaste.java.artifacts.repository import maven_repository
from codetaste.source.download import Download, discard_download, make_download_client

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx2

    from codetaste.java.artifacts.artifact_set import Artifact, ArtifactSet

FOLDER = "jars"
"""The folder of the cache with the jars."""
_COMPLETE = "complete"
_CONCURRENT = 8
_HINT = "check which repository the settings of Maven name"


def jars_folder(cache: Path) -> Path:
    """Return the folder of the jars in the cache folder ``cache``."""
    return cache / FOLDER


def is_installed(wanted: ArtifactSet, cache: Path) -> bool:
    """Return whether all jars of the set are stored. Blocking."""
    folder = jars_folder(cache)
    try:
        recorded = _record(wanted, folder).read_text("utf-8")
    except OSError:
        return False
    return recorded == _digest(wanted) and all(_is_there(folder, each) for each in wanted.artifacts)


def class_path(wanted: ArtifactSet, cache: Path) -> tuple[Path, ...]:
    """Return the stored jars of the set, in its order. Blocking.

    Raises:
        ToolMissing: it is not installed.
    """
    if not is_installed(wanted, cache):
        raise ToolMissing(
            f"{wanted.name} is not installed: run `codetaste java install {wanted.name}` "
            f"({wanted.size // 1_000_000} MB)"
        )
    folder = jars_folder(cache).absolute()  # JVMs have a folder of their own
    return tuple(folder / each.path for each in wanted.artifacts)


async def install_artifacts(
    wanted: ArtifactSet, cache: Path, *, progress: Callable[[int, int], None] = lambda _done, _all: None
) -> tuple[Path, ...]:
    """Return the jars of the set, and fetch those that are missing or altered.

    The content of each one is compared with its digest. One process does so at a time: a download that was
    killed is continued.

    Args:
        wanted: the set.
        cache: the cache folder.
        progress: called with the number of jars that are there, and of all.

    Raises:
        SourceError: a jar cannot be fetched, or is not the pinned one.
        StorageFull: no space left.
    """
    folder = jars_folder(cache)
    base = await to_thread.run_sync(maven_repository)
    limiter, done = anyio.CapacityLimiter(_CONCURRENT), 0

    async def fetch(artifact: Artifact) -> None:
        nonlocal done
        async with limiter:
            await _fetch(artifact, folder, base, http)
        done += 1
        progress(done, len(wanted.artifacts))

    async with (
        locked(folder / "lock"),
        await to_thread.run_sync(make_download_client) as http,
    ):
        await gather([partial(fetch, artifact) for artifact in wanted.artifacts])
        await to_thread.run_sync(write_atomically, _record(wanted, folder), _digest(wanted))
    return await to_thread.run_sync(class_path, wanted, cache)


async def _fetch(artifact: Artifact, folder: Path, base: str, http: httpx2.AsyncClient) -> None:
    target = folder / artifact.path
    if await to_thread.run_sync(_is_pinned, target, artifact):
        return
    partial_file = target.with_name(f".{target.name}.part")
    download = Download(f"{base}/{artifact.path}", partial_file, artifact.coordinates, _HINT)
    try:
        fetched = await download.run(http)
        if fetched.sha256 != artifact.sha256:
            raise SourceError(
                f"{artifact.coordinates}: {fetched.url} has another content (SHA-256 {fetched.sha256}) than "
                f"the pinned one ({artifact.sha256}); check which repository the settings of Maven name"
            )
        await to_thread.run_sync(partial_file.replace, target)
    except OSError as error:
        raise storage_error(error, f"cannot write {target}", SourceError) from error
    finally:
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(discard_download, partial_file)


def _is_pinned(path: Path, artifact: Artifact) -> bool:
    return path.is_file() and file_sha256(path) == artifact.sha256


def _is_there(folder: Path, artifact: Artifact) -> bool:
    """Return whether a jar has its size; its digest was checked when it was put there."""
    try:
        return (folder / artifact.path).stat().st_size == artifact.size
    except OSError:
        return False


def _record(wanted: ArtifactSet, folder: Path) -> Path:
    return folder / _COMPLETE / wanted.name


def _digest(wanted: ArtifactSet) -> str:
    return json_digest([[each.coordinates, each.sha256] for each in wanted.artifacts])
