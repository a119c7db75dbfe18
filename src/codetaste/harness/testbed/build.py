"""Build a testbed: one walk over a tree writes git's objects, the index and the archive for sandboxes.

git reads a ``fast-import`` stream, never the tree's files, so attributes, filters, line endings and hooks
have no effect. The same trees give the same bytes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import subprocess
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from codetaste.core.files import storage_error
from codetaste.core.text import printable_name
from codetaste.errors import SourceError, StorageFull, ToolMissing
from codetaste.harness.testbed.git_index import EXECUTABLE_MODE, FILE_MODE, LINK_MODE, encode_index
from codetaste.sandbox.base import GID, TESTBED, UID
from codetaste.source.git import NO_GIT, git_command, git_environment
from codetaste.source.tree.writer import MTIME_NS, is_git_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

GIT_FOLDER, ARCHIVE_FILE, HEAD_REF = "git", "testbed.tar", "refs/heads/main"

RAW_ATTRIBUTES = "* -text -ident -filter !working-tree-encoding\n"
"""Makes git treat every file as binary: the agent's git checks out the committed files byte for byte."""

_CONFIG = """\
[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = false
\tlogallrefupdates = true
\tcheckStat = minimal
\ttrustctime = false
[user]
\tname = agent
\temail = agent@localhost
[gc]
\tauto = 0
[maintenance]
\tauto = false
"""
_FILE_TIME_S = MTIME_NS // 10**9
_GIT_TIME_S = _FILE_TIME_S + 86_400
"""Time of git's own files; git does not trust an index that is not newer than its files."""
_COMMIT = b"commit refs/heads/main\ncommitter codetaste <codetaste@localhost> %d +0000\n"
_FIRST_MESSAGE, _LATER_MESSAGE = b"base", b"head"
_INIT_OPTIONS = ("--quiet", "--bare", "--template=", "--initial-branch=main", "--object-format=sha1")
_CHUNK_BYTES = 1 << 20


def build_testbed(trees: Sequence[Path], into: Path, check: Callable[[], None]) -> None:
    """Build the testbed of ``trees`` in the new folder ``into``; to be called in a thread.

    Args:
        trees: cached trees, one for each commit, the first commit first; the work tree is the last one.
        into: receives the repository and the archive.
        check: called for every file; it raises to cancel.

    Raises:
        SourceError: a tree cannot be read, or git rejected it.
        StorageFull: no space left.
        ToolMissing: git is not installed.
    """
    try:
        git_dir = into / GIT_FOLDER
        git_dir.mkdir(parents=True)
        with _popen(["init", *_INIT_OPTIONS], git_dir) as process:
            _, stderr = process.communicate()
        if process.returncode:
            raise _git_error(stderr.decode("utf-8", "replace"))
        with (into / ARCHIVE_FILE).open("wb") as archive, Path(os.devnull).open("wb") as nothing:
            *earlier, last = map(os.fsencode, trees)
            writer = _TreeWriter(last, archive, check)
            _import_commits([*(_TreeWriter(tree, nothing, check) for tree in earlier), writer], git_dir)
            (git_dir / "config").write_text(_CONFIG, encoding="ascii")
            (git_dir / "info").mkdir()
            (git_dir / "info" / "attributes").write_text(RAW_ATTRIBUTES, encoding="ascii")
            (git_dir / "index").write_bytes(encode_index(writer.entries, _FILE_TIME_S))
            writer.pack_repository(git_dir)
    except OSError as error:
        raise storage_error(error, f"cannot create the testbed {into}", SourceError) from error


def _import_commits(trees: Sequence[_TreeWriter], git_dir: Path) -> None:
    """Import the trees into git, each as one commit."""
    settings = ("-c", "fastimport.unpackLimit=0")
    with _popen([*settings, "fast-import", "--quiet", "--date-format=raw", "--done"], git_dir) as process:
        git = cast("IO[bytes]", process.stdin)
        try:
            for position, tree in enumerate(trees):
                tree.write_files(git)
                message = _LATER_MESSAGE if position else _FIRST_MESSAGE
                git.write(_COMMIT % (_FILE_TIME_S + position))
                git.write(b"data %d\n%s\ndeleteall\n" % (len(message), message))
                git.writelines(
                    b"M %o %s %s\n" % (mode, identity.hex().encode(), quote_path(name))
                    for name, mode, identity, _ in tree.entries
                )
                git.write(b"\n")
            git.write(b"done\n")
            git.close()
        except BrokenPipeError:
            pass  # git's standard error has the reason
        except BaseException:
            process.kill()
            raise
        stderr = cast("IO[bytes]", process.stderr).read().decode("utf-8", "replace")
    if process.returncode:
        raise _git_error(stderr)


@dataclass(slots=True)
class _TreeWriter:
    """Writes one tree to git and to an archive; ``entries`` are its files and links, as in an index."""

    tree: bytes
    archive: IO[bytes]
    check: Callable[[], None]
    entries: list[tuple[bytes, int, bytes, int]] = field(default_factory=list)

    def write_files(self, git: IO[bytes]) -> None:
        """Write all files of the tree to git as blobs, and to the archive."""
        for name, item in _walk(self.tree):
            self.check()
            inside = _join(TESTBED[1:].encode(), name)
            if item is None:
                self.archive.write(member_header(inside, tarfile.DIRTYPE))
                continue
            if is_git_name(item.name):
                raise SourceError(f"{printable_name(name)} cannot be in a git repository")
            status = item.stat(follow_symlinks=False)
            if stat.S_ISLNK(status.st_mode):
                target = os.readlink(item.path)  # noqa: PTH115 - a Path would lose 'x/./y' and a slash at the end
                self.archive.write(member_header(inside, tarfile.SYMTYPE, link=target))
                self._write_blob(name, LINK_MODE, len(target), iter([target]), git)
            elif stat.S_ISREG(status.st_mode):
                mode, size = EXECUTABLE_MODE if status.st_mode & 0o100 else FILE_MODE, status.st_size
                self.archive.write(member_header(inside, tarfile.REGTYPE, mode=mode & 0o777, size=size))
                self._write_blob(name, mode, size, self._read_and_archive(item.path, size), git)
            else:
                raise SourceError(f"{printable_name(name)} is neither a file, a folder nor a link")

    def _write_blob(self, name: bytes, mode: int, size: int, chunks: Iterator[bytes], git: IO[bytes]) -> None:
        digest = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        git.write(b"blob\ndata %d\n" % size)
        for chunk in chunks:
            digest.update(chunk)
            git.write(chunk)
        git.write(b"\n")
        self.entries.append((name, mode, digest.digest(), size))

    def _read_and_archive(self, path: bytes, size: int) -> Iterator[bytes]:
        """Yield a file's content in chunks, and write it to the archive."""
        left = size
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW), "rb", buffering=0) as file:
            while left:
                chunk = file.read(min(left, _CHUNK_BYTES))
                if not chunk:
                    raise SourceError(f"{printable_name(path)} shrinks while it is read; run it again")
                left -= len(chunk)
                self.archive.write(chunk)
                yield chunk
        self.archive.write(b"\0" * (-size % tarfile.BLOCKSIZE))

    def pack_repository(self, git_dir: Path) -> None:
        """Write the repository to the archive as the tree's ``.git``."""
        for below, item in _walk(os.fsencode(git_dir)):
            name = _join(TESTBED[1:].encode() + b"/.git", below)
            if item is None:
                self.archive.write(member_header(name, tarfile.DIRTYPE, mtime_s=_GIT_TIME_S))
                continue
            size = item.stat().st_size
            self.archive.write(member_header(name, tarfile.REGTYPE, size=size, mtime_s=_GIT_TIME_S))
            for _ in self._read_and_archive(item.path, size):
                self.check()


def _walk(root: bytes) -> Iterator[tuple[bytes, os.DirEntry[bytes] | None]]:
    """Yield each folder (with None), then its files and links; names are relative to ``root``."""
    folders = [b""]
    while folders:
        folder = folders.pop()
        yield folder, None
        with os.scandir(_join(root, folder)) as found:
            items = sorted(found, key=lambda item: item.name)
        for item in items:
            name = _join(folder, item.name)
            if item.is_dir(follow_symlinks=False):
                folders.append(name)
            else:
                yield name, item


def member_header(
    name: bytes,
    kind: bytes,
    *,
    mode: int = 0o644,
    size: int = 0,
    link: bytes = b"",
    mtime_s: int = _FILE_TIME_S,
) -> bytes:
    """Return the header of a member owned by the sandbox's user; the GNU format allows any name."""
    info = tarfile.TarInfo(name.decode("utf-8", "surrogateescape"))
    info.type, info.size, info.mtime = kind, size, mtime_s
    info.mode = 0o755 if kind == tarfile.DIRTYPE else mode
    info.uid, info.gid = UID, GID
    info.linkname = link.decode("utf-8", "surrogateescape")
    return info.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape")


def quote_path(name: bytes) -> bytes:
    """Return ``name`` quoted with C escapes, as in git's streams."""
    escapes = {0x22: b'\\"', 0x5C: b"\\\\", 0x0A: b"\\n"}
    return b'"%s"' % b"".join(escapes.get(byte, bytes((byte,))) for byte in name)


def _join(folder: bytes, name: bytes) -> bytes:
    return b"%s/%s" % (folder, name) if folder and name else folder or name


def _popen(args: list[str], git_dir: Path) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            git_command(args, git_dir),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=git_environment(),
            cwd="/",
        )
    except FileNotFoundError:
        raise ToolMissing(NO_GIT) from None


def _git_error(stderr: str) -> SourceError | StorageFull:
    lines = stderr.strip().splitlines() or ["git gave no reason"]
    if "No space left" in stderr:
        return StorageFull("git: no space left on the device; free some, or name another cache folder")
    return SourceError(f"cannot create a git repository from the tree: {lines[0]}")
