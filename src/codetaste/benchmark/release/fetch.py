"""Fetch a published benchmark: download its release, or take a local archive or folder, and check it.

The folder appears only when it is complete, with a manifest of its origin, with which a second fetch is
compared. No digest of the release is published, so a first download relies on TLS and the structure check.
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import from_thread, to_thread

from codetaste import __version__
from codetaste.benchmark.check import Inventory, read_inventory, reject_unsafe_files
from codetaste.benchmark.release.staging import staging_folder
from codetaste.core.files import read_regular_file, storage_error
from codetaste.core.hashing import file_sha256
from codetaste.errors import ConfigError, SourceError, StorageFull, UnsafeArchive
from codetaste.source.archive import ArchiveLimits, unpack_archive
from codetaste.source.download import Download, discard_download, make_download_client
from codetaste.source.tree.store import tree_digest
from codetaste.source.tree.writer import TreeLimits

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST_FILE = "codetaste-fetch.json"
_LIMITS = ArchiveLimits(TreeLimits(members=500_000, total_bytes=16 * 1024**3))
_ARCHIVE = "archive"
_MAX_SHOWN = 5
_NOT_FOUND_HINT = "check the address, or pass a local file with --from"


@dataclass(frozen=True, slots=True)
class Release:
    """A published benchmark. ``sha256`` (hex) is of its archive, "" if none is published."""

    name: str
    url: str
    instances: int | None = None
    sha256: str = ""


RELEASES = {
    release.name: release
    for release in (
        Release(
            "codetaste100",
            "https://github.com/logic-star-ai/refactoring-benchmark/releases/download/v1.0.0/codetaste100.zip",
            instances=100,
        ),
    )
}
"""Releases that can be fetched by name. The archive of codetaste100 was unreachable when this was written."""


@dataclass(frozen=True, slots=True)
class FetchedBenchmark:
    """A benchmark folder that is in place.

    Attributes:
        folder: the folder.
        sha256: of the archive, or the ``tree_digest`` of a source folder.
        source: the address or path from which it was fetched.
        verified: whether the archive matches a published digest.
        inventory: which files it has and lacks.
        new: whether this call created it.
    """

    folder: Path
    sha256: str
    source: str
    verified: bool
    inventory: Inventory
    new: bool


@dataclass(frozen=True, slots=True)
class _Origin:
    """The source of a benchmark folder: an archive, or a folder."""

    path: Path
    source: str
    sha256: str
    archive: bool


async def fetch_benchmark(
    release: Release,
    to: Path,
    *,
    source: str = "",
    incomplete: bool = False,
    progress: Callable[[int, int | None], None] = lambda _done, _total: None,
) -> FetchedBenchmark:
    """Fetch the benchmark ``release`` to ``to``, or check it if it is there.

    Args:
        release: the release to fetch.
        to: the folder; an existing benchmark is checked, compared and not changed.
        source: a URL, an archive or a folder instead of the release's address.
        incomplete: accept a folder that lacks files of some instances.
        progress: called with the number of bytes downloaded, and the total if that is known.

    Raises:
        ConfigError: the source is not this benchmark, or ``to`` has another one.
        SourceError: it cannot be fetched, or is damaged; UnsafeArchive: it has links, devices or bad names.
        StorageFull: no space left.
    """
    to = await to_thread.run_sync(to.absolute)
    async with staging_folder(to) as staging:
        if await to_thread.run_sync(_not_empty, to):
            return await to_thread.run_sync(_check_existing, release, to, source, incomplete)
        origin = await _obtain(release, source, staging, progress)
        if release.sha256 and origin.archive and origin.sha256 != release.sha256:
            raise SourceError(
                f"{origin.source}: its sha256 is {origin.sha256}, the release's is {release.sha256}; not used"
            )
        try:
            fetched = await to_thread.run_sync(
                lambda: _build(release, origin, staging, to, incomplete=incomplete)
            )
        except StorageFull:
            raise
        except SourceError:
            # Otherwise the next fetch would find the damaged archive complete, and fail again.
            await to_thread.run_sync(discard_download, staging / _ARCHIVE)
            raise
        await to_thread.run_sync(lambda: shutil.rmtree(staging, ignore_errors=True))
        return fetched


def _not_empty(folder: Path) -> bool:
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


async def _obtain(
    release: Release, source: str, staging: Path, progress: Callable[[int, int | None], None]
) -> _Origin:
    address = source or release.url
    if address.startswith(("https://", "http://")):
        file = Download(address, staging / _ARCHIVE, not_found_hint=_NOT_FOUND_HINT, progress=progress)
        async with await to_thread.run_sync(make_download_client) as http:
            got = await file.run(http)
        return _Origin(got.path, address, got.sha256, archive=True)
    return await to_thread.run_sync(_local_origin, address)


def _local_origin(name: str) -> _Origin:
    path = Path(name).expanduser()
    if path.is_dir():
        return _Origin(path, str(path), tree_digest(path), archive=False)
    try:
        return _Origin(path, str(path), file_sha256(path), archive=True)
    except OSError as error:
        raise ConfigError(
            f"--from: {path}: {error.strerror}; expected a URL, an archive or a folder"
        ) from None


def _build(
    release: Release, origin: _Origin, staging: Path, to: Path, *, incomplete: bool
) -> FetchedBenchmark:
    stage = staging / "unpacked"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.rmtree(stage.with_name(f"{stage.name}.unpacking"), ignore_errors=True)
    if origin.archive:
        unpack_archive(
            origin.path, stage, label=origin.source, limits=_LIMITS, check=from_thread.check_cancelled
        )
        try:
            reject_unsafe_files(stage, origin.source)
        except UnsafeArchive:
            shutil.rmtree(stage, ignore_errors=True)
            raise
    else:
        reject_unsafe_files(origin.path, origin.source)
        try:
            shutil.copytree(origin.path, stage, ignore=shutil.ignore_patterns(MANIFEST_FILE))
        except (OSError, shutil.Error) as error:
            full = error if isinstance(error, OSError) and error.errno else OSError(str(error)[:300])
            raise storage_error(full, str(origin.path), SourceError) from error
    try:
        inventory = _check_inventory(release, stage, origin.source, incomplete=incomplete)
    except ConfigError:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    verified = bool(release.sha256) and origin.archive
    fetched = FetchedBenchmark(to, origin.sha256, origin.source, verified, inventory, new=True)
    try:
        (stage / MANIFEST_FILE).write_text(json.dumps(_manifest(release, fetched), indent=2) + "\n", "utf-8")
        stage.rename(to)
    except OSError as error:
        raise storage_error(error, str(to), SourceError) from error
    return fetched


def _check_inventory(release: Release, folder: Path, source: str, *, incomplete: bool) -> Inventory:
    """Return the inventory of ``folder``, with paths relative to it in the messages."""
    try:
        found = read_inventory(folder, instances=release.instances)
    except ConfigError as error:
        lines = (
            problem.replace(f"{folder}{os.sep}", "").replace(str(folder), "it") for problem in error.problems
        )
        raise ConfigError(*(f"{source}: not {release.name}: {line}" for line in lines)) from None
    prefix = f"{folder}{os.sep}"
    found = replace(
        found,
        missing=tuple(line.replace(prefix, "") for line in found.missing),
        missing_for_tests=tuple(line.replace(prefix, "") for line in found.missing_for_tests),
    )
    if found.missing and not incomplete:
        more = len(found.missing) - _MAX_SHOWN
        raise ConfigError(
            *(f"{source}: {line}" for line in found.missing[:_MAX_SHOWN]),
            *([f"{source}: and {more} more files"] if more > 0 else []),
            "the benchmark is incomplete; --incomplete accepts it as it is",
        )
    return found


def _check_existing(release: Release, to: Path, source: str, incomplete: bool) -> FetchedBenchmark:
    """Check the existing folder ``to``, and compare it with a local ``source`` if its manifest permits."""
    manifest = _read_manifest(to)
    inventory = _check_inventory(
        release, to, str(to), incomplete=incomplete or bool(manifest.get("incomplete"))
    )
    was = str(manifest.get("sha256", ""))
    if source and not source.startswith(("https://", "http://")) and was:
        now = _local_origin(source)
        if now.archive == bool(manifest.get("archive")) and now.sha256 != was:
            raise ConfigError(
                f"{to}: has other content (sha256 {was[:12]}…) than {source} (sha256 "
                f"{now.sha256[:12]}…); remove it, or name another folder with --to"
            )
    verified = bool(release.sha256) and was == release.sha256
    return FetchedBenchmark(to, was, str(manifest.get("source", "")), verified, inventory, new=False)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(read_regular_file(folder / MANIFEST_FILE))
    except (OSError, ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _manifest(release: Release, fetched: FetchedBenchmark) -> dict[str, Any]:
    return {
        "release": release.name,
        "source": fetched.source,
        "archive": not Path(fetched.source).is_dir(),
        "sha256": fetched.sha256,
        "verified": fetched.verified,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "instances": fetched.inventory.instances,
        "incomplete": bool(fetched.inventory.missing),
        "missing": len(fetched.inventory.missing),
        "missing_for_tests": len(fetched.inventory.missing_for_tests),
        "codetaste": __version__,
    }
