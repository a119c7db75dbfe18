"""On-disk cache of matches, limited in size, shared by any number of processes.

The cache folder has one folder per engine with an unguessable name: a program that can only test which paths
exist must not learn which rules were scanned. In it, ``entries/`` has one file per set of rules, replaced
atomically. Any file may be missing or damaged at any time: then there is no answer, but never a wrong one.
The least recently used files are removed first.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from codetaste.core.files import read_regular_file
from codetaste.errors import CodetasteError
from codetaste.rules.cache.entry import CacheEntry, DamagedEntry
from codetaste.rules.cache.keys import set_key
from codetaste.source.tree.opaque_names import opaque_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

DEFAULT_SIZE_BYTES = 1024**3
"""Default size limit, bytes."""
_ENTRIES = "entries"
_CACHE_FILE = re.compile(r"[0-9a-f]{32}/entries/([0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9a-f]{8})")
_MAX_FILES = 250_000
_STALE_S = 3600.0
_BLOCK = 512


class MatchStore:
    """Cache entries of one engine, for use in a worker thread. It never raises; it warns once."""

    def __init__(
        self,
        root: Path,
        engine: str,
        *,
        size: int = DEFAULT_SIZE_BYTES,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the store; nothing is read or written yet.

        Args:
            root: the cache folder; other files in it are left alone.
            engine: identifies the engine whose answers are stored.
            size: size limit of the folder, bytes.
            warn: called at most once, with the reason why the cache does not work.
        """
        self._root, self._engine, self._size, self._warn = root, engine, size, warn
        self._bytes_since_cleanup = size  # so that the first write checks the size
        self._writable = True

    def load(self, rules: Iterable[bytes]) -> CacheEntry | None:
        """Return the entry of exactly these rules (keys, sorted)."""
        rules = tuple(rules)
        if self._folder is None:
            return None
        path = self._folder / set_key(rules).hex()
        try:
            data = read_regular_file(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn_once(f"cannot be read: {error.strerror or error}; scans go on without it")
            return None
        with suppress(OSError):  # owned by another user, or removed
            os.utime(path)
        try:
            entry = CacheEntry.from_bytes(data)
        except DamagedEntry:
            self._warn_once("was damaged; the lost entries are computed again")
            with suppress(OSError):  # owned by another user, or on a read-only disk
                path.unlink(missing_ok=True)
            return None
        return entry if entry.rules == rules else None

    def add(self, entry: CacheEntry) -> None:
        """Merge ``entry`` into the stored one, and replace that if both together have too many files."""
        if not entry.files or not entry.rules or not self._writable or self._folder is None:
            return
        before = self.load(entry.rules)
        files = {**before.files, **entry.files} if before else entry.files
        data = CacheEntry(entry.rules, files if len(files) <= _MAX_FILES else entry.files).to_bytes()
        path = self._folder / set_key(entry.rules).hex()
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                draft.write_bytes(data)
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
            self._bytes_since_cleanup += len(data)
            self._make_room()
        except OSError as error:
            self._writable = False
            self._warn_once(f"cannot be written: {error.strerror or error}; scans go on without it")

    @cached_property
    def _folder(self) -> Path | None:
        try:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._root / opaque_name(self._root, f"matches {self._engine}") / _ENTRIES
        except (OSError, CodetasteError) as error:
            self._warn_once(f"cannot be used: {error}; scans go on without it")
            return None

    def _make_room(self) -> None:
        """Remove the least recently used files, if enough was written since the last clean-up."""
        if self._bytes_since_cleanup < self._size // 32:
            return
        self._bytes_since_cleanup = 0
        entries, now_s = [], time.time()
        for path in self._root.glob("*/*/*"):
            if not _CACHE_FILE.fullmatch(path.relative_to(self._root).as_posix()):
                continue
            try:
                state = path.lstat()
            except OSError:
                continue
            draft = path.name.startswith(".")
            if not draft or now_s - state.st_mtime > _STALE_S:
                entries.append((0.0 if draft else state.st_mtime, state.st_blocks * _BLOCK, path))
        total = sum(size for _, size, _ in entries)
        if total <= self._size * 15 // 16:
            return
        for _, size, path in sorted(entries):
            path.unlink(missing_ok=True)
            total -= size
            if total <= self._size * 3 // 4:
                return

    def _warn_once(self, what: str) -> None:
        warn, self._warn = self._warn, lambda _: None
        warn(f"the cache of rule matches in {self._root} {what}")
