"""The cache of matches on disk: sheets in files, bounded in size, shared by any number of processes.

Below the cache folder there is one folder for each engine, with a name that nobody can guess: whoever can
only ask which paths exist must not learn which rules were scanned. In it, ``sheets/`` has a file for each set
of rules, replaced whole, and ``rules/`` tells for each rule in which sets it is. Any file may vanish at any
time, or hold anything: then there is no answer, but never a wrong one. What was used last is removed last.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING

from codetaste.errors import CodetasteError
from codetaste.rules.cache_keys import KEY_BYTES, set_key
from codetaste.rules.cache_sheet import Damaged, Sheet
from codetaste.source.hidden import hidden_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

SIZE = 1024**3
"""Bytes, where nothing else is said."""
_SHEETS, _RULES = "sheets", "rules"
_OURS = re.compile(r"[0-9a-f]{32}/(sheets|rules)/([0-9a-f]{32}|\.[0-9a-f]{32}\.[0-9a-f]{8})")
_MOST_FILES = 250_000
_MOST_SHEETS = 24
_STALE_S = 3600.0
_BLOCK = 512


class MatchStore:
    """Sheets of one engine. All of it blocks: call it in a thread. It raises nothing; it warns, once."""

    def __init__(
        self, root: Path, engine: str, *, size: int = SIZE, warn: Callable[[str], None] = lambda _: None
    ) -> None:
        """Prepare; nothing is touched yet.

        Args:
            root: the cache folder; what it holds besides is left alone.
            engine: what tells this engine's answers from any other's.
            size: bytes that the folder may take.
            warn: is told, at most once, that the cache cannot be used as it should.
        """
        self._root, self._engine, self._size, self._warn = root, engine, size, warn
        self._unswept = size  # so that the first writer looks
        self._writable = True

    def exact(self, rules: Iterable[bytes]) -> Sheet | None:
        """Return the sheet of exactly these rules (keys, sorted)."""
        rules = tuple(rules)
        sheet = self._load(set_key(rules))
        return sheet if sheet is not None and sheet.rules == rules else None

    def others(self, rules: Iterable[bytes]) -> list[Sheet]:
        """Return the latest sheets that answer for some of ``rules``, but for exactly these."""
        rules = tuple(rules)
        names: dict[bytes, None] = {}
        for rule in dict.fromkeys(rules):
            for name in self._sets_with(rule)[-_MOST_SHEETS:]:
                names[name] = None
        names.pop(set_key(rules), None)
        found = (self._load(name) for name in [*names][-_MOST_SHEETS:])
        return [sheet for sheet in found if sheet is not None]

    def add(self, sheet: Sheet, *, used: Iterable[bytes] = ()) -> None:
        """Keep ``sheet`` beside what is known of its rules; if that is too much, only of it and ``used``."""
        if not sheet.files or not sheet.rules or not self._writable or self._place is None:
            return
        before = self.exact(sheet.rules)
        files = {**before.files, **sheet.files} if before else dict(sheet.files)
        if len(files) > _MOST_FILES:
            files = {key: files[key] for key in dict.fromkeys((*used, *sheet.files)) if key in files}
        name = set_key(sheet.rules)
        try:
            self._replace(self._path(_SHEETS, name), Sheet(sheet.rules, files).to_bytes())
            if before is None:
                for rule in dict.fromkeys(sheet.rules):
                    self._append(self._path(_RULES, rule), name)
            self._make_room()
        except OSError as error:
            self._writable = False
            self._complain(f"cannot be written: {error.strerror or error}; scans go on without it")

    @cached_property
    def _place(self) -> Path | None:
        try:
            self._root.mkdir(parents=True, exist_ok=True, mode=0o700)
            return self._root / hidden_name(self._root, f"matches {self._engine}")
        except (OSError, CodetasteError) as error:
            self._complain(f"cannot be used: {error}; scans go on without it")
            return None

    def _path(self, kind: str, key: bytes) -> Path:
        assert self._place is not None  # noqa: S101 - the callers have looked
        return self._place / kind / key.hex()

    def _load(self, name: bytes) -> Sheet | None:
        data = self._bytes(_SHEETS, name)
        if data is None:
            return None
        try:
            return Sheet.from_bytes(data)
        except Damaged:
            self._complain("was damaged; what is lost is matched again")
            with suppress(OSError):  # somebody else's, or on a disk that cannot be written
                self._path(_SHEETS, name).unlink(missing_ok=True)
            return None

    def _sets_with(self, rule: bytes) -> list[bytes]:
        """The names of the sheets that answer for ``rule``, the latest last; some may be gone."""
        data = self._bytes(_RULES, rule) or b""
        names = [data[at : at + KEY_BYTES] for at in range(0, len(data) - KEY_BYTES + 1, KEY_BYTES)]
        return [*dict.fromkeys(reversed(names))][::-1]

    def _bytes(self, kind: str, key: bytes) -> bytes | None:
        if self._place is None:
            return None
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            self._complain(f"cannot be read: {error.strerror or error}; scans go on without it")
            return None
        self._touch(path)
        return data

    def _touch(self, path: Path) -> None:
        try:
            os.utime(path)
        except OSError:  # somebody else's, or gone
            return

    def _replace(self, path: Path, data: bytes) -> None:
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            draft.write_bytes(data)
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)
        self._unswept += len(data)

    def _append(self, path: Path, name: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with path.open("ab") as file:
            file.write(name)

    def _make_room(self) -> None:
        """Remove what was not used for longest, once enough was written since the last look."""
        if self._unswept < self._size // 32:
            return
        self._unswept = 0
        entries, now_s = [], time.time()
        for path, state in _files(self._root):
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

    def _complain(self, what: str) -> None:
        warn, self._warn = self._warn, lambda _: None
        warn(f"the cache of rule matches in {self._root} {what}")


def _files(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All files of any engine's folder."""
    for path in root.glob("*/*/*"):
        if _OURS.fullmatch(path.relative_to(root).as_posix()):
            try:
                yield path, path.lstat()
            except OSError:
                continue
