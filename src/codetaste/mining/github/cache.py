"""Answers on disk, so that a run that continues does not ask again.

One SQLite file, since a crawl has a million answers: a file for each would be synchronized one by one. Each
``put`` is a transaction, and processes may share the file. It has answers only, never a request.
"""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import anyio
from anyio import to_thread

from codetaste.errors import SourceError, StorageFull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_FORMAT = 1
"""Increase it when the queries or the facts change: older answers are dropped."""
_BUSY_S = 60.0
_KEYS_AT_ONCE = 500
_DAMAGED = frozenset({"SQLITE_NOTADB", "SQLITE_CORRUPT"})
_CREATE = """
create table if not exists answers (key text primary key, stored_at real, etag text, value blob) without rowid
"""


class CachedAnswer(NamedTuple):
    """An answer as bytes.

    Attributes:
        stored_at: when GitHub gave or confirmed it, seconds since 1970.
        etag: for a conditional request; "" without.
        value: the answer.
    """

    stored_at: float
    etag: str
    value: bytes


class AnswerCache:
    """The answers in the file ``path``; all methods are for one event loop."""

    def __init__(self, path: Path, report: Callable[[str], None]) -> None:
        self._path, self._report = path, report
        self._lock = anyio.Lock()
        self._database: sqlite3.Connection | None = None

    async def open(self) -> None:
        """Open or create the file; a damaged one is replaced, and reported.

        Raises:
            SourceError: it cannot be opened.
            StorageFull: no space left.
        """
        await to_thread.run_sync(self._open)

    async def close(self) -> None:
        """Close the file."""
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self._database is not None:
                    await to_thread.run_sync(self._database.close)
                    self._database = None

    async def get(self, keys: Sequence[str]) -> dict[str, CachedAnswer]:
        """Return the stored answers of ``keys``.

        Raises:
            SourceError: the file cannot be read.
        """
        async with self._lock:
            return await to_thread.run_sync(self._get, keys)

    async def put(self, answers: Mapping[str, CachedAnswer]) -> None:
        """Store ``answers``, all or none.

        Raises:
            SourceError: the file cannot be written.
            StorageFull: no space left.
        """
        if answers:
            # Shielded: what is here was paid for, and takes milliseconds.
            with anyio.CancelScope(shield=True):
                async with self._lock:
                    await to_thread.run_sync(self._put, answers)

    def _open(self) -> None:
        with self._errors():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._database = self._connect()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorname not in _DAMAGED:
                    raise
                self._report(f"{self._path}: the cache is damaged; it begins anew")
                for suffix in ("", "-wal", "-shm"):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
                self._database = self._connect()

    def _connect(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=_BUSY_S, check_same_thread=False, isolation_level=None)
        try:
            database.execute("pragma journal_mode = wal")
            database.execute("pragma synchronous = normal")
            database.execute("begin immediate")
            (stored_format,) = database.execute("pragma user_version").fetchone()
            if stored_format != _FORMAT:
                database.execute("drop table if exists answers")
                database.execute(f"pragma user_version = {_FORMAT}")
            database.execute(_CREATE)
            database.execute("commit")
        except BaseException:
            database.close()
            raise
        return database

    def _get(self, keys: Sequence[str]) -> dict[str, CachedAnswer]:
        found: dict[str, CachedAnswer] = {}
        with self._errors():
            for start in range(0, len(keys), _KEYS_AT_ONCE):
                some = keys[start : start + _KEYS_AT_ONCE]
                marks = ",".join("?" * len(some))
                query = f"select key, stored_at, etag, value from answers where key in ({marks})"  # noqa: S608
                for key, stored_at, etag, packed in self._opened().execute(query, some):
                    try:
                        found[key] = CachedAnswer(stored_at, etag, zlib.decompress(packed))
                    except (zlib.error, TypeError):
                        continue  # a damaged answer is asked for again
        return found

    def _put(self, answers: Mapping[str, CachedAnswer]) -> None:
        rows = [
            (key, answer.stored_at, answer.etag, zlib.compress(answer.value, 1))
            for key, answer in answers.items()
        ]
        with self._errors():
            database = self._opened()
            database.execute("begin immediate")
            try:
                database.executemany("insert or replace into answers values (?, ?, ?, ?)", rows)
                database.execute("commit")
            except BaseException:
                if database.in_transaction:  # a full disk has ended it already
                    database.execute("rollback")
                raise

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            raise SourceError(f"{self._path}: the cache is closed")
        return self._database

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            name = getattr(error, "sqlite_errorname", "")
            if name == "SQLITE_FULL":
                raise StorageFull(
                    f"{self._path}: no space left; free space on that disk, then repeat the command"
                ) from error
            hint = "remove it" if name in _DAMAGED else "it must be readable and writable"
            raise SourceError(f"{self._path}: the cache of GitHub's answers: {error}; {hint}") from error
        except OSError as error:
            raise SourceError(f"{self._path}: {error.strerror or error}; it must be writable") from error
