"""Write the tree of a commit to a folder, from git's objects."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from codetaste.core.files import storage_error
from codetaste.core.text import printable_name
from codetaste.errors import SourceError, ToolMissing
from codetaste.source.git import NO_GIT, git_command, git_environment
from codetaste.source.tree.writer import TreeLimits, TreeWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_CHUNK_BYTES = 1 << 20
_LINK_BYTES = 1 << 16
_SUBMODULE, _LINK = b"160000", b"120000"
_LIMITS = TreeLimits(members=1_000_000, total_bytes=32 * 1024**3)


class MissingObject(SourceError):
    """The repository has not all objects of the exported commit."""


class _Member(NamedTuple):
    mode: bytes
    object: bytes
    name: bytes


def export_tree(
    git_dir: Path,
    listing: bytes,
    into: Path,
    label: str,
    check: Callable[[], None],
    limits: TreeLimits = _LIMITS,
) -> None:
    """Write the members that ``git ls-tree -r -z`` listed to the new folder ``into``.

    Each object is checked against its hash. A submodule becomes an empty folder, as in a plain clone.

    Raises:
        UnsafeArchive: a member's name would leave the folder or create a git directory.
        MissingObject: an object is missing.
        SourceError: an object is damaged.
        StorageFull: no space left.
    """
    members = [_member(line) for line in listing.split(b"\0") if line]
    try:
        into.mkdir(parents=True)
    except OSError as error:
        raise storage_error(error, label, SourceError) from error
    writer = TreeWriter(into, label, limits, check)
    with tempfile.TemporaryFile() as object_list:
        object_list.writelines(member.object + b"\n" for member in members if member.mode != _SUBMODULE)
        object_list.seek(0)
        try:
            process = subprocess.Popen(
                git_command(["cat-file", "--batch", "--buffer"], git_dir),
                stdin=object_list,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=git_environment(),
                cwd="/",
            )
        except FileNotFoundError:
            raise ToolMissing(NO_GIT) from None
    with process:
        try:
            objects = cast("IO[bytes]", process.stdout)
            for member in members:
                _write(member, objects, writer, label)
        finally:
            process.kill()
    writer.finish(contained=False)


def _member(line: bytes) -> _Member:
    head, _, name = line.partition(b"\t")
    mode, _, identity = head.split(b" ")
    return _Member(mode, identity, name)


def _write(member: _Member, objects: IO[bytes], writer: TreeWriter, label: str) -> None:
    if member.mode == _SUBMODULE:
        writer.add_folder(member.name)
        return
    fields = objects.readline().split()
    if len(fields) != 3 or fields[1] != b"blob":  # noqa: PLR2004 - name, type, size
        raise MissingObject(
            f"{label}: object {member.object.decode()} ({printable_name(member.name)}) is missing"
        )
    chunks = _blob(objects, int(fields[2]), member, label)
    if member.mode == _LINK:
        if int(fields[2]) > _LINK_BYTES:
            raise writer.member_error(member.name, "is a symbolic link with an invalid target")
        writer.add_link(member.name, b"".join(chunks))
    else:
        writer.add_file(member.name, chunks, executable=member.mode == b"100755")


def _blob(objects: IO[bytes], size: int, member: _Member, label: str) -> Iterator[bytes]:
    digest = hashlib.new("sha1" if len(member.object) == 40 else "sha256", usedforsecurity=False)  # noqa: PLR2004
    digest.update(b"blob %d\0" % size)
    left = size
    while left:
        chunk = objects.read(min(left, _CHUNK_BYTES))
        if not chunk:
            raise SourceError(
                f"{label}: git output ended inside {printable_name(member.name)}; "
                "check the clone with git fsck"
            )
        digest.update(chunk)
        left -= len(chunk)
        yield chunk
    objects.read(1)
    if digest.hexdigest().encode() != member.object:
        raise SourceError(f"{label}: {printable_name(member.name)} is damaged; check the clone with git fsck")
