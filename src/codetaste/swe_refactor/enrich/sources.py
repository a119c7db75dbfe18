"""Java sources of a commit, read from git's objects: the files that it changes, and all of a tree."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from anyio import from_thread, to_thread

from codetaste.errors import SourceError
from codetaste.source.git import run_git
from codetaste.source.tree.export import MissingObject, export_tree

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from codetaste.source.repository import Repository

_REGULAR = ("100644", "100755")
_SUFFIX = ".java"


@dataclass(frozen=True, slots=True)
class ChangedSources:
    """The Java files that a commit changes, by path: their texts in its first parent and in the commit.

    ``before`` has no file that the commit adds, ``after`` none that it deletes.
    """

    commit: str
    parent: str
    before: Mapping[str, str]
    after: Mapping[str, str]


async def read_changed_sources(repository: Repository, commit: str) -> ChangedSources:
    """Read the Java files that ``commit``, a full hash, changes against its first parent.

    Raises:
        SourceError: the commit or an object is missing, or it has no parent.
    """
    parents = await run_git("rev-list", "--parents", "-n1", commit, "--", git_dir=repository.git_dir)
    if not parents.ok:
        raise SourceError(f"{repository.label} has no commit {commit}")
    hashes = parents.output.decode().split()
    if len(hashes) == 1:
        raise SourceError(f"{repository.label}: {commit[:12]} has no parent here")
    compare = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    listing = await run_git(*compare, hashes[1], commit, git_dir=repository.git_dir)
    if not listing.ok:
        raise SourceError(f"{repository.label}: the trees of {commit[:12]} are incomplete")
    before: dict[str, str] = {}
    after: dict[str, str] = {}
    for modes, objects, path in _entries(listing.output):
        for mode, name, side in zip(modes, objects, (before, after), strict=True):
            if mode in _REGULAR:
                side[path] = name
    texts = await _read_blobs(repository, {*before.values(), *after.values()})
    return ChangedSources(
        commit,
        hashes[1],
        {path: texts[name] for path, name in before.items()},
        {path: texts[name] for path, name in after.items()},
    )


def _entries(listing: bytes) -> Iterator[tuple[list[str], list[str], str]]:
    """Yield both modes, both objects and the path of each changed Java file."""
    tokens = iter(listing.decode("utf-8", "replace").split("\0"))
    for head in tokens:
        if not head:
            return
        old_mode, new_mode, old, new, _ = head.removeprefix(":").split(" ")
        path = next(tokens)
        if path.endswith(_SUFFIX):
            yield [old_mode, new_mode], [old, new], path


async def _read_blobs(repository: Repository, names: Iterable[str]) -> dict[str, str]:
    wanted = sorted(names)
    with tempfile.TemporaryFile() as requests:
        requests.write("".join(f"{name}\n" for name in wanted).encode())
        requests.seek(0)
        batch = await _cat_files(repository, requests)
    texts, position = {}, 0
    for name in wanted:
        end = batch.index(b"\n", position)
        kind, _, size = batch[position:end].decode().partition(" ")[2].partition(" ")
        if kind != "blob":
            raise SourceError(f"{repository.label}: the object {name[:12]} is missing")
        start = end + 1
        texts[name] = batch[start : start + int(size)].decode("utf-8", "replace")
        position = start + int(size) + 1
    return texts


async def _cat_files(repository: Repository, requests: IO[bytes]) -> bytes:
    found = await run_git("cat-file", "--batch", git_dir=repository.git_dir, stdin=requests)
    if not found.ok:
        raise SourceError(f"{repository.label}: objects cannot be read: {found.stderr}")
    return found.output


async def export_java_files(repository: Repository, commit: str, into: Path) -> None:
    """Write the regular Java files of the tree of ``commit`` to the new folder ``into``.

    Raises:
        UnsafeArchive: a name would leave the folder.
        SourceError: the commit or an object is missing.
        StorageFull: no space left.
    """
    listing = await run_git("ls-tree", "-r", "-z", "--full-tree", commit, git_dir=repository.git_dir)
    if not listing.ok:
        raise SourceError(f"{repository.label} has no complete tree of {commit[:12]}")
    modes = tuple(mode.encode() for mode in _REGULAR)
    lines = [
        line
        for line in listing.output.split(b"\0")
        if line.startswith(modes) and line.endswith(_SUFFIX.encode())
    ]
    label = f"{repository.label} at {commit[:8]}"
    try:
        await to_thread.run_sync(
            export_tree, repository.git_dir, b"\0".join(lines), into, label, from_thread.check_cancelled
        )
    except MissingObject as error:
        raise SourceError(str(error)) from None
