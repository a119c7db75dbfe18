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

from codetaste.core.files import MAX_LINE_BYTES, storage_error, sync_directory
from codetaste.errors import JournalError
from codetaste.orchestration.journal.reading import FORMAT, JOURNAL_FILE, check_complete, read_lines
from codetaste.orchestration.journal.run_lock import lock_directory

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from pathlib import Path

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
            TypeError: the line is not JSON; ValueError: it contains a number that is not finite, or is longer
                than any reader takes.
            StorageFull: an earlier write has failed.
        """
        text = encode(line)
        if len(text) >= MAX_LINE_BYTES:
            raise ValueError(f"a journal line of {len(text):,} bytes")
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


def _open(path: Path, replay: Callable[[dict[str, Any]], None]) -> Journal:
    descriptor = -1
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        end, has_started = 0, False
        for end, line in read_lines(path, replay=replay):  # noqa: B007  # the last end is used below
            has_started = has_started or line["event"] == "started"
        torn = os.fstat(descriptor).st_size - end
        if not has_started:
            check_complete(path, end)
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
