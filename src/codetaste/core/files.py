"""Files shared by processes and safe from crashes: atomic writes, locks, removal of leftovers."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import subprocess
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio import to_thread

from codetaste.core.processes import process_exists
from codetaste.errors import CodetasteError, JournalError, SourceError, StorageFull

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from io import BufferedReader

_Error = TypeVar("_Error", bound=CodetasteError)

_TEMPORARY_NAME = re.compile(r"\..+\.(\d+)\.[0-9a-f]{8}\.tmp")

MAX_INPUT_BYTES = 64 * 1024**2
"""Maximum size of an input file, where no smaller one is stated."""
_PART_BYTES = 1024**2

MAX_LINE_BYTES = 256 * 1024**2
"""Maximum size of a line of a journal, ledger or cassette: two of the largest replies that are read."""

_LOCK = "lock"
"""The file in a folder that is locked while its creator lives."""

_FIRST_POLL_S, _LAST_POLL_S = 0.01, 0.1


def storage_error(error: OSError, what: object, kind: type[_Error]) -> StorageFull | _Error:
    """Return the error to raise for ``error`` at ``what``: StorageFull without space, else a ``kind``.

    A JournalError is about files of a run: there a failing disk and a file above the maximum size are
    StorageFull, too, which stops the run cleanly.
    """
    problem = f"{what}: {error.strerror or error}"
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return StorageFull(f"{problem}; free space on that disk, then repeat the command")
    if kind is not JournalError:
        return kind(problem)
    if error.errno in {errno.EIO, errno.EFBIG}:
        return StorageFull(f"{problem}; check that disk and its limits, then repeat the command")
    return kind(f"{problem}; it must be readable and writable")


def write_atomically(path: Path, content: str | bytes, mode: int | None = None) -> Path:
    """Write ``content`` to ``path`` and create its folders as needed. Call it from a worker thread.

    The file has ``mode``, or the usual one, from the moment when it has its name.

    Raises:
        StorageFull: no space left; the previous file at ``path`` is unchanged.
        JournalError: the file cannot be written for another reason.
    """
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    temporary = _temporary_name(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("xb") as file:
                file.write(data)
                if mode is not None:
                    os.fchmod(file.fileno(), mode)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
            sync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise storage_error(error, f"{path}: cannot be written", JournalError) from error
    return path


def link_file(source: Path, target: Path) -> None:
    """Give the file ``source`` a second name, or copy it where links are impossible; replaces ``target``.

    Call it from a worker thread. A link takes no space, and has the content of ``source`` until one of both
    names is replaced.

    Raises:
        OSError: ``source`` is no file, or there is no space.
    """
    with contextlib.suppress(FileNotFoundError):
        if source.samefile(target):
            return
    temporary = _temporary_name(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _temporary_name(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")


def open_regular_file(path: Path) -> BufferedReader:
    """Open a file for reading that a user, an agent or another program made. It never waits.

    Raises:
        OSError: it cannot be opened, or is a pipe, a device, a socket or a folder.
    """
    try:
        # O_NONBLOCK: opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except ValueError as error:
        raise OSError(errno.EINVAL, f"not a path: {error}", str(path)) from None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return os.fdopen(descriptor, "rb")
    is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
    os.close(descriptor)
    if is_folder:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    raise OSError(errno.EINVAL, "not a regular file", str(path))


def read_regular_file(path: Path, limit: int = MAX_INPUT_BYTES) -> bytes:
    """Return the content of an input file. Call it from a worker thread.

    Raises:
        OSError: as ``open_regular_file``, or it has more than ``limit`` bytes.
    """
    parts, left = [], limit + 1
    with open_regular_file(path) as file:
        # Not all at once: that would reserve the memory of the limit.
        while part := file.read(min(left, _PART_BYTES)):
            parts.append(part)
            left -= len(part)
    if not left:
        raise OSError(errno.EINVAL, f"larger than {limit:,} bytes", str(path))
    return b"".join(parts)


def lines_of(file: BufferedReader, path: Path) -> Iterator[bytes]:
    """Yield the lines of the file at ``path``, a journal, ledger or cassette, each with its end.

    Raises:
        JournalError: a line has more than ``MAX_LINE_BYTES``.
        OSError: the file cannot be read.
    """
    number = 0
    while line := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(line) > MAX_LINE_BYTES:
            raise JournalError(
                f"{path}, line {number}: longer than {MAX_LINE_BYTES:,} bytes, as no line is "
                "that codetaste writes; restore the file"
            )
        yield line


def read_text_file(path: Path, limit: int = MAX_INPUT_BYTES) -> str:
    """Return the UTF-8 text of an input file, without a byte order mark.

    Raises:
        OSError: as ``read_regular_file``.
        UnicodeDecodeError: it is not UTF-8.
    """
    return read_regular_file(path, limit).decode("utf-8-sig")


def sync_directory(directory: Path) -> None:
    """Make the names in ``directory`` durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove_stale_files(folder: Path) -> None:
    """Remove temporary files of killed writers below ``folder``. Call it from a worker thread."""
    for path in folder.rglob(".*.tmp"):
        if (match := _TEMPORARY_NAME.fullmatch(path.name)) and not process_exists(int(match[1])):
            path.unlink(missing_ok=True)


def stale_folders(parent: Path, prefix: str, min_age_s: float = 0.0) -> Iterator[Path]:
    """Yield the folders ``<prefix><process id>-…`` in ``parent`` whose process has ended.

    Args:
        parent: the folder of the folders.
        prefix: the beginning of their names.
        min_age_s: younger ones are left out; for folders that other PID namespaces use, too.
    """
    for folder in parent.glob(f"{prefix}*"):
        process = folder.name.removeprefix(prefix).partition("-")[0]
        try:
            age_s = time.time() - folder.stat().st_mtime
        except OSError:
            continue
        if age_s >= min_age_s and process.isdecimal() and not process_exists(int(process)):
            yield folder


def remove_tree(folder: Path) -> None:
    """Remove ``folder``, if it exists, also where the modes of its folders deny access. Blocking."""
    if not os.path.lexists(folder):
        return
    # Not shutil.rmtree: it gives up on trees that are nested too deeply.
    remove_all = ["/bin/rm", "-rf", "--", str(folder)]
    if subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL).returncode:
        grant = ["/bin/chmod", "-R", "u+rwX", "--", str(folder)]
        subprocess.run(grant, check=False, stderr=subprocess.DEVNULL)
        subprocess.run(remove_all, check=False, stderr=subprocess.DEVNULL)


def try_lock(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file until it is closed or this process ends; return False if another has the lock."""
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def make_locked_folder(within: Path, prefix: str) -> tuple[Path, int]:
    """Create a folder with a locked file, returned open: the lock shows that its creator lives."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within))
    lock = os.open(folder / "unlocked", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try_lock(lock)
    (folder / "unlocked").rename(folder / _LOCK)
    return folder, lock


def remove_abandoned(within: Path, prefix: str) -> None:
    """Remove the folders of ``make_locked_folder`` whose creators were killed, those of this user only."""
    for folder in within.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):
            if folder.lstat().st_uid != os.geteuid():
                continue
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                if try_lock(lock):
                    remove_tree(folder)
            finally:
                os.close(lock)


@asynccontextmanager
async def locked(path: Path, kind: type[CodetasteError] = SourceError) -> AsyncIterator[None]:
    """Lock ``path``, a folder or a file that is created, against all other tasks and processes.

    The file stays; a crash releases the lock.

    Raises:
        StorageFull: no space left.
        kind: it cannot be created or locked.
    """

    def open_file() -> int:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = os.O_RDONLY if path.is_dir() else os.O_RDWR | os.O_CREAT
        return os.open(path, mode | os.O_CLOEXEC, 0o644)

    async with AsyncExitStack() as stack:
        try:
            descriptor = await to_thread.run_sync(open_file)
            stack.callback(os.close, descriptor)
            pause_s = _FIRST_POLL_S
            # A blocking lock could not be cancelled, so it is polled.
            while not try_lock(descriptor):
                await anyio.sleep(pause_s)
                pause_s = min(pause_s * 1.5, _LAST_POLL_S)
        except OSError as error:
            raise storage_error(error, f"cannot lock {path}", kind) from error
        yield
