"""The append-only journal of a run: one JSON line per event, made durable in groups.

``append`` returns when the line is on disk. Lines that arrive while a group is being written form the next
group, so that a thousand appends cost a few fsyncs. Deferrable lines wait a few milliseconds for a line that
a caller waits for. One process owns a journal; any process may read it.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread

from codetaste.core.files import MAX_LINE_BYTES, lines_of, open_regular_file, storage_error, sync_directory
from codetaste.errors import JournalError
from codetaste.orchestration.journal.run_lock import lock_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping
    from pathlib import Path

FORMAT = 2
"""Version of the lines in ``journal/lines.py``."""
JOURNAL_FILE = "journal.jsonl"
_RESTORE = "restore the journal, or start a new run under another name"
_MAX_HEADER_BYTES = 256
LOGS_FOLDER = "logs"
"""The folder of a run with its logs. It shows no spending: logs are opened with the journal."""
_GROUPING_S = 0.01

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
_sync = getattr(os, "fdatasync", os.fsync)


def json_copy(value: Json) -> Json:
    """Return an independent copy of ``value``, as if written to the journal and read back.

    Raises:
        TypeError: ``value`` is not JSON.
        ValueError: ``value`` contains a number that is not finite.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    copy: Json = json.loads(encode(value))
    return copy


class CommitGroup:
    """Lines that become durable together."""

    __slots__ = ("done", "failure", "lines")

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.done = anyio.Event()
        self.failure: JournalError | None = None

    async def wait_durable(self) -> None:
        """Return when the lines are on disk.

        Raises:
            StorageFull: they could not be written.
        """
        await self.done.wait()
        if self.failure is not None:
            raise type(self.failure)(str(self.failure))


class Journal:
    """A journal that this process owns. ``repaired`` reports a torn last line that was cut off, or is ""."""

    def __init__(self, path: Path, descriptor: int, size: int, repaired: str) -> None:
        self.path, self.repaired = path, repaired
        self.failed = anyio.Event()
        self._failure: JournalError | None = None
        self._descriptor, self._size = descriptor, size
        self._group = CommitGroup()
        self._has_lines, self._wake = anyio.Event(), anyio.Event()
        self._closing = False
        self._limiter = anyio.CapacityLimiter(1)

    @property
    def failure(self) -> JournalError | None:
        """A new exception that tells why writing has failed; None while writing works."""
        return None if self._failure is None else type(self._failure)(str(self._failure))

    @property
    def open(self) -> bool:
        """Whether lines can be written."""
        return self._failure is None and not self._closing

    def queue(self, line: Mapping[str, object], *, deferrable: bool = False) -> CommitGroup:
        """Add one line to the next group and return the group; a ``deferrable`` line triggers no write.

        Raises:
            TypeError: the line is not JSON.
            ValueError: it contains a number that is not finite, or is too long.
            StorageFull: an earlier write has failed.
        """
        text = encode(line)
        if len(text) >= MAX_LINE_BYTES:
            raise ValueError(f"a line of {len(text):,} bytes is too long for the journal")
        if (failure := self.failure) is not None:
            raise failure
        if self._closing:
            raise JournalError(f"{self.path} is closed")
        self._group.lines.append(text)
        self._has_lines.set()
        if not deferrable:
            self._wake.set()
        return self._group

    async def append(self, line: Mapping[str, object]) -> None:
        """Write one line; it is durable on return. The line of a cancelled append is still written.

        Raises:
            StorageFull: the line is not on disk, and no later line will be.
        """
        await self.queue(line).wait_durable()

    async def run(self) -> None:
        """Write groups until closed. Shielded: lines queued before a cancellation become durable."""
        with anyio.CancelScope(shield=True):
            while True:
                await self._has_lines.wait()
                with anyio.move_on_after(_GROUPING_S):
                    await self._wake.wait()
                group, self._group = self._group, CommitGroup()
                self._has_lines, self._wake = anyio.Event(), anyio.Event()
                if group.lines:
                    await self._commit(group)
                if self._closing and not self._group.lines:
                    return

    def close(self) -> None:
        """Make ``run`` return once all queued lines are durable."""
        self._closing = True
        self._has_lines.set()
        self._wake.set()

    async def _commit(self, group: CommitGroup) -> None:
        if self._failure is None:
            data = ("\n".join(group.lines) + "\n").encode()
            try:
                await anyio.to_thread.run_sync(self._write, data, limiter=self._limiter)
            except OSError as error:
                self._failure = storage_error(error, self.path, JournalError)
                self.failed.set()
            else:
                self._size += len(data)
        group.failure = self.failure
        group.done.set()

    def _write(self, data: bytes) -> None:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            _sync(self._descriptor)
        except OSError:
            # No caller was promised the written part of the group; without it the file stays valid.
            os.ftruncate(self._descriptor, self._size)
            raise


@asynccontextmanager
async def open_journal(directory: Path, replay: Callable[[dict[str, Any]], None]) -> AsyncIterator[Journal]:
    """Lock ``directory`` (created if missing), pass each journal line to ``replay``, and open it to append.

    A torn last line, left by a crash, is cut off and reported in ``Journal.repaired``.

    Raises:
        RunBusy: another process owns the directory.
        JournalError: a line in the middle is damaged, the first line of a run with products is
            missing, or it has another format.
        StorageFull: no space left.
    """
    path = directory / JOURNAL_FILE
    lock = await anyio.to_thread.run_sync(lock_directory, directory)
    try:
        journal = await anyio.to_thread.run_sync(_open, path, replay)
        error: Exception | None = None
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(journal.run)
                try:
                    yield journal
                except Exception as raised:  # noqa: BLE001  # raised again below, not wrapped into a group
                    error = raised
                finally:
                    journal.close()
        finally:
            os.close(journal._descriptor)  # noqa: SLF001  # opened by this module
        if error is not None:
            raise error
    finally:
        os.close(lock)


def read_lines(path: Path, start: int = 0) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the end offset and the content of each whole line from offset ``start``, up to a torn last line.

    Raises:
        JournalError: the file is missing, a line in the middle is damaged or has a value that no line has
            (lines are counted from ``start``), or it has another format.
    """
    end, broken = start, 0
    since = f" after byte {start}" if start else ""
    try:
        with open_regular_file(path) as file:
            file.seek(start)
            for number, raw in enumerate(lines_of(file, path), 1):
                if broken:
                    where = f"{path}, line {broken}{since}"
                    cure = "repair or remove it" if start or broken > 1 else _RESTORE
                    raise JournalError(f"{where}: not a journal line, but more lines follow; {cure}")
                if not raw.endswith(b"\n"):
                    return  # a process is writing it now, or a crash has torn it
                line = _parse(raw)
                if line is None:
                    broken = number
                    continue
                if number == 1 and not start:
                    _check_format(path, line)
                elif problem := _line_problem(line):
                    raise JournalError(f"{path}, line {number}{since}: {problem}; repair or remove it")
                end += len(raw)
                yield end, line
    except OSError as error:
        raise storage_error(error, path, JournalError) from error


def _line_problem(line: dict[str, Any]) -> str:
    # imported here because a new run has no lines to check, and pydantic is a third of what a start takes
    from codetaste.orchestration.journal.lines import line_problem  # noqa: PLC0415

    return line_problem(line)


def check_format(path: Path) -> None:
    """Check the first line of the journal at ``path``, for a reader that does not use ``read_lines``.

    Raises:
        JournalError: it has another format or cannot be read; a damaged first line passes.
    """
    try:
        with open_regular_file(path) as file:
            line = _parse(next(lines_of(file, path), b""))
    except OSError as error:
        raise storage_error(error, path, JournalError) from error
    if line is not None and line["event"] == "journal":
        _check_format(path, line)


def _parse(raw: bytes) -> dict[str, Any] | None:
    try:
        line = _decode(raw.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return line if isinstance(line, dict) and isinstance(line.get("event"), str) else None


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name}: no journal line has a number that is not finite")


_decode = json.JSONDecoder(parse_constant=_reject_constant).decode


def _check_format(path: Path, line: Mapping[str, Any]) -> None:
    written = line.get("format")
    if line["event"] != "journal" or type(written) is not int:
        raise JournalError(f"{path} does not start like a codetaste journal; use another run directory")
    if written != FORMAT:
        raise JournalError(
            f"{path} has journal format {written}, this codetaste reads and writes format {FORMAT}; "
            "use the version of codetaste that made the run, or start a new run under another name"
        )


def replay_line(path: Path, line: dict[str, Any], replay: Callable[[dict[str, Any]], None]) -> None:
    """Pass ``line`` of the journal at ``path`` to ``replay``.

    Raises:
        JournalError: ``replay`` finds it damaged; the message names the file.
    """
    try:
        replay(line)
    except JournalError as error:
        # It contradicts earlier lines: one of these may be lost, and a removal would hide what it cost.
        raise JournalError(f"{path}: {error}; {_RESTORE}") from error


def check_new(path: Path, end: int, torn: int = 0) -> None:
    """Check that a journal in which no job has started is that of a run that has done nothing.

    Args:
        path: of the journal.
        end: of its last whole line, in bytes; 0 if it has none.
        torn: bytes after a journal without a whole line.

    Raises:
        JournalError: it has, so that what it has spent is unknown.
    """
    # A folder with a dot is for the time of a run: one that ends before its first job has it too.
    places = [each for each in path.parent.iterdir() if each.is_dir() and not each.name.startswith(".")]
    folders = [each for each in places if each.name != LOGS_FOLDER]
    products = sorted(each.name for each in folders if any(map(_is_product, each.rglob("*"))))
    if torn > _MAX_HEADER_BYTES or products:
        problem = "no job has started in it" if end else "the first line is missing or damaged"
        has = f"the run has {', '.join(products[:3])}" if products else f"{torn:,} bytes follow"
        raise JournalError(f"{path}: {problem}, but {has}, so what the run has spent is unknown; {_RESTORE}")


def _is_product(path: Path) -> bool:
    """Tell whether a file is more than a leftover of an interrupted write."""
    return path.is_file() and not path.name.startswith(".")


def _open(path: Path, replay: Callable[[dict[str, Any]], None]) -> Journal:
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        end, has_started = 0, False
        for end, line in read_lines(path):  # noqa: B007  # the last end is used below
            has_started = has_started or line["event"] == "started"
            replay_line(path, line, replay)
        torn = os.fstat(descriptor).st_size - end
        if not has_started:
            check_new(path, end, 0 if end else torn)
        if torn:
            os.ftruncate(descriptor, end)
        if not end:
            header = encode({"event": "journal", "format": FORMAT, "t": round(time.time(), 3)}) + "\n"
            end += os.write(descriptor, header.encode())
            sync_directory(path.parent)
        _sync(descriptor)
    except BaseException as error:
        if descriptor >= 0:
            os.close(descriptor)
        if isinstance(error, OSError):
            raise storage_error(error, path, JournalError) from error
        raise
    repaired = f"{path}: a torn last line of {torn} bytes was cut off" if torn else ""
    return Journal(path, descriptor, end, repaired)
