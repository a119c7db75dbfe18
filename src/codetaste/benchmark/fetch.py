"""Getting a published benchmark: its release from the web, or an archive or folder at hand, checked.

The folder appears when it is whole, with a manifest that says what it was made of: a second fetch compares.
No digest of the release is known, so that a first download rests on TLS and on the check of its structure.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyio import from_thread, to_thread

from codetaste import __version__
from codetaste.benchmark.download import discard, download
from codetaste.benchmark.verify import Inventory, refuse_surprises, take_inventory
from codetaste.benchmark.workshop import workshop
from codetaste.errors import ConfigError, SourceError, StorageFull, UnsafeArchive
from codetaste.source.archive import ArchiveLimits, unpack
from codetaste.source.tree import tree_digest
from codetaste.source.writing import TreeLimits, storage_error

if TYPE_CHECKING:
    from collections.abc import Callable

MANIFEST = "codetaste-fetch.json"
_LIMITS = ArchiveLimits(TreeLimits(members=500_000, total_bytes=16 * 1024**3))
_ARCHIVE = "archive"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Release:
    """A published benchmark. ``sha256`` (hex) is of its archive, "" where nobody has published it."""

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
"""What can be fetched by name. The archive of codetaste100 could not be reached when this was written."""


@dataclass(frozen=True, slots=True)
class Fetched:
    """A benchmark folder in its place.

    Attributes:
        folder: where it is.
        sha256: of the archive, or the ``tree_digest`` of a folder.
        source: where it came from.
        verified: whether a published digest vouches for it.
        inventory: what it has.
        new: whether this call put it there.
    """

    folder: Path
    sha256: str
    source: str
    verified: bool
    inventory: Inventory
    new: bool


@dataclass(frozen=True, slots=True)
class _Origin:
    """What a folder is to be made of: an archive, or a folder."""

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
) -> Fetched:
    """Put the benchmark ``release`` at ``to``, or find it there.

    Args:
        release: which one.
        to: the folder; what is there already is checked, compared and left as it is.
        source: a URL, an archive or a folder to take in place of the release's address.
        incomplete: accept a folder that lacks files of some instances.
        progress: told how many bytes are downloaded, and of how many.

    Raises:
        ConfigError: what came is no such benchmark, or another one is there.
        SourceError: it cannot be had, or is damaged; UnsafeArchive: it is hostile.
        StorageFull: no space left.
    """
    to = await to_thread.run_sync(to.absolute)
    async with workshop(to) as shop:
        if await to_thread.run_sync(_holds_something, to):
            return await to_thread.run_sync(_found, release, to, source, incomplete)
        origin = await _bring(release, source, shop, progress)
        if release.sha256 and origin.archive and origin.sha256 != release.sha256:
            raise SourceError(
                f"{origin.source}: its sha256 is {origin.sha256}, the release's is {release.sha256}; not used"
            )
        try:
            made = await to_thread.run_sync(lambda: _make(release, origin, shop, to, incomplete=incomplete))
        except StorageFull:
            raise
        except SourceError:
            # Asked for again, a damaged archive would be found whole and damaged for ever.
            await to_thread.run_sync(discard, shop / _ARCHIVE)
            raise
        await to_thread.run_sync(lambda: shutil.rmtree(shop, ignore_errors=True))
        return made


def _holds_something(folder: Path) -> bool:
    return folder.exists() and not (folder.is_dir() and not any(folder.iterdir()))


async def _bring(
    release: Release, source: str, shop: Path, progress: Callable[[int, int | None], None]
) -> _Origin:
    address = source or release.url
    if address.startswith(("https://", "http://")):
        got = await download(address, shop / _ARCHIVE, progress=progress)
        return _Origin(got.path, address, got.sha256, archive=True)
    return await to_thread.run_sync(_at_hand, address)


def _at_hand(name: str) -> _Origin:
    path = Path(name).expanduser()
    if path.is_dir():
        return _Origin(path, str(path), tree_digest(path), archive=False)
    try:
        with path.open("rb") as file:
            return _Origin(path, str(path), hashlib.file_digest(file, "sha256").hexdigest(), archive=True)
    except OSError as error:
        raise ConfigError(
            f"--from: {path}: {error.strerror}; expected a URL, an archive or a folder"
        ) from None


def _make(release: Release, origin: _Origin, shop: Path, to: Path, *, incomplete: bool) -> Fetched:
    stage = shop / "unpacked"
    shutil.rmtree(stage, ignore_errors=True)
    shutil.rmtree(stage.with_name(f"{stage.name}.unpacking"), ignore_errors=True)
    if origin.archive:
        unpack(origin.path, stage, label=origin.source, limits=_LIMITS, check=from_thread.check_cancelled)
        try:
            refuse_surprises(stage, origin.source)
        except UnsafeArchive:
            shutil.rmtree(stage, ignore_errors=True)
            raise
    else:
        refuse_surprises(origin.path, origin.source)
        _copy(origin.path, stage)
    try:
        inventory = _checked(release, stage, origin.source, incomplete=incomplete)
    except ConfigError:
        shutil.rmtree(stage, ignore_errors=True)
        raise
    verified = bool(release.sha256) and origin.archive
    made = Fetched(to, origin.sha256, origin.source, verified, inventory, new=True)
    try:
        (stage / MANIFEST).write_text(json.dumps(_manifest(release, made), indent=2) + "\n", "utf-8")
        stage.rename(to)
    except OSError as error:
        raise storage_error(error, str(to)) from error
    return made


def _copy(source: Path, stage: Path) -> None:
    try:
        shutil.copytree(source, stage, ignore=shutil.ignore_patterns(MANIFEST))
    except (OSError, shutil.Error) as error:
        full = error if isinstance(error, OSError) and error.errno else OSError(str(error)[:300])
        raise storage_error(full, str(source)) from error


def _checked(release: Release, folder: Path, source: str, *, incomplete: bool) -> Inventory:
    """Take the inventory of ``folder``, and name files as they are called in their final place."""
    try:
        found = take_inventory(folder, instances=release.instances)
    except ConfigError as error:
        lines = (
            problem.replace(f"{folder}{os.sep}", "").replace(str(folder), "it") for problem in error.problems
        )
        raise ConfigError(*(f"{source}: no {release.name}: {line}" for line in lines)) from None
    prefix = f"{folder}{os.sep}"
    found = replace(
        found,
        missing=tuple(line.replace(prefix, "") for line in found.missing),
        lacking=tuple(line.replace(prefix, "") for line in found.lacking),
    )
    if found.missing and not incomplete:
        more = len(found.missing) - _SHOWN
        raise ConfigError(
            *(f"{source}: {line}" for line in found.missing[:_SHOWN]),
            *([f"{source}: and {more} more files"] if more > 0 else []),
            "this is not all of the benchmark; --incomplete takes it as it is",
        )
    return found


def _found(release: Release, to: Path, source: str, incomplete: bool) -> Fetched:
    """Check what is at ``to`` already, and that it is what would be fetched, as far as that can be known."""
    manifest = _read_manifest(to)
    inventory = _checked(release, to, str(to), incomplete=incomplete or bool(manifest.get("incomplete")))
    was = str(manifest.get("sha256", ""))
    if source and not source.startswith(("https://", "http://")) and was:
        now = _at_hand(source)
        if now.archive == bool(manifest.get("archive")) and now.sha256 != was:
            raise ConfigError(
                f"{to}: was made of other content (sha256 {was[:12]}…) than {source} (sha256 "
                f"{now.sha256[:12]}…); remove it, or name another folder with --to"
            )
    verified = bool(release.sha256) and was == release.sha256
    return Fetched(to, was, str(manifest.get("source", "")), verified, inventory, new=False)


def _read_manifest(folder: Path) -> dict[str, Any]:
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _manifest(release: Release, made: Fetched) -> dict[str, Any]:
    return {
        "release": release.name,
        "source": made.source,
        "archive": not Path(made.source).is_dir(),
        "sha256": made.sha256,
        "verified": made.verified,
        "fetched": datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "instances": made.inventory.instances,
        "incomplete": bool(made.inventory.missing),
        "missing": len(made.inventory.missing),
        "lacking": len(made.inventory.lacking),
        "codetaste": __version__,
    }
