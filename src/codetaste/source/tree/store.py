"""Cache of immutable trees: plain folders that hold R or R∘X*, without a ``.git``.

A tree is written under a temporary name and renamed together with its seal (digest and file states), so a
visible tree is always complete. A lock lets many jobs and processes request the same tree.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread

from codetaste.core.files import locked, read_text_file, storage_error
from codetaste.core.text import printable_name
from codetaste.errors import SourceError
from codetaste.source.tree.walk import walk_tree

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

_SEAL = "seal.json"
_FILE, _PROGRAM, _LINK = b"100644", b"100755", b"120000"


@dataclass(frozen=True, slots=True)
class Tree:
    """A folder and the digest of its content (``tree_digest``)."""

    path: Path
    digest: str


@dataclass(frozen=True, slots=True)
class _Entry:
    name: bytes
    mode: bytes
    size: int
    mtime_ns: int


def tree_digest(root: Path) -> str:
    """Return the sha256 (hex) over paths, modes and contents of all files and links below ``root``.

    Modes are git's (file, executable file, link); empty folders, owners and times do not count, links are not
    followed. Equal digests mean that a scan of both gives equal results.

    Raises:
        SourceError: an entry is neither file, folder nor link, or cannot be read.
    """
    digest = hashlib.sha256(b"codetaste tree 1\n")
    base = os.fsencode(root)
    try:
        for entry in _entries(base):
            content = _content_digest(b"%s/%s" % (base, entry.name), entry.mode)
            digest.update(b"%s %d %s %s\n" % (entry.mode, len(entry.name), entry.name, content))
    except OSError as error:
        raise SourceError(f"{root}: cannot be read: {error}") from error
    return digest.hexdigest()


async def cached_tree(cache: Path, key: str, fill: Callable[[Path], Awaitable[None]]) -> Tree:
    """Return the tree ``key`` of the cache; ``fill`` makes it if it is missing or was modified.

    ``fill`` gets a path that does not exist yet and makes the folder. It runs at most once at a time over all
    processes; if it fails, nothing is stored.

    Raises:
        StorageFull: no space left.
        SourceError: raised by ``fill``, or the cache folder cannot be written.
    """
    home = cache / "trees" / key
    found = await to_thread.run_sync(_reuse, home)
    if found is not None:
        return found
    async with locked(cache / "locks" / f"{key}.lock"):
        found = await to_thread.run_sync(_reuse, home)
        if found is not None:
            return found
        stage = home.with_name(f".{key}.making")
        try:
            await to_thread.run_sync(_prepare, stage, key)
            await fill(stage / "tree")
            return await to_thread.run_sync(_seal, stage, home)
        finally:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(_sweep, home)


def _prepare(stage: Path, key: str) -> None:
    _sweep(stage.with_name(key))
    try:
        stage.mkdir(parents=True)
    except OSError as error:
        raise storage_error(error, f"cannot make {stage}", SourceError) from error


def _sweep(home: Path) -> None:
    """Remove temporary folders of this or a killed process beside ``home``; call it under the lock."""
    for rest in home.parent.glob(f".{home.name}.*"):
        shutil.rmtree(rest, ignore_errors=True)


def _reuse(home: Path) -> Tree | None:
    """Return the sealed tree if names, modes, sizes and times have not changed since."""
    try:
        seal = json.loads(read_text_file(home / _SEAL))
        tree = home / "tree"
        if seal["shape"] == _shape(tree):
            return Tree(tree, str(seal["digest"]))
    except (OSError, ValueError, KeyError, TypeError, SourceError):
        return None
    return None


def _seal(stage: Path, home: Path) -> Tree:
    tree = stage / "tree"
    digest = tree_digest(tree)
    try:
        with (stage / _SEAL).open("w", encoding="utf-8") as file:
            json.dump({"digest": digest, "shape": _shape(tree)}, file)
            file.flush()
            os.fsync(file.fileno())
        if home.exists():  # modified after it was sealed
            home.rename(home.with_name(f".{home.name}.changed"))
        stage.rename(home)
    except OSError as error:
        raise storage_error(error, f"cannot write {home}", SourceError) from error
    return Tree(home / "tree", digest)


def _shape(tree: Path) -> str:
    """Digest names, modes, sizes and times: what a change would alter, without reading any file."""
    digest = hashlib.sha256()
    for entry in _entries(os.fsencode(tree)):
        digest.update(
            b"%s %d %d %d %s\n" % (entry.mode, entry.size, entry.mtime_ns, len(entry.name), entry.name)
        )
    return digest.hexdigest()


def _entries(base: bytes) -> list[_Entry]:
    """Return all files and links below ``base``, sorted by name."""
    found = []
    for name, item in walk_tree(base):
        status = item.stat(follow_symlinks=False)
        found.append(_Entry(name, _git_mode(status, name), status.st_size, status.st_mtime_ns))
    return sorted(found, key=lambda entry: entry.name)


def _git_mode(status: os.stat_result, name: bytes) -> bytes:
    if stat.S_ISLNK(status.st_mode):
        return _LINK
    if stat.S_ISREG(status.st_mode):
        return _PROGRAM if status.st_mode & 0o100 else _FILE
    raise SourceError(f"{printable_name(name)} is neither a file, a folder nor a link")


def _content_digest(path: bytes, mode: bytes) -> bytes:
    if mode == _LINK:
        target = os.readlink(path)  # noqa: PTH115 - a Path would lose 'x/./y' and a trailing slash
        return hashlib.sha256(target).hexdigest().encode()
    with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
        return hashlib.file_digest(file, "sha256").hexdigest().encode()
