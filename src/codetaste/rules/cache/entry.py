"""A cache entry: the engine's answers for files with one set of rules, as data and as bytes.

The bytes carry a checksum, so damaged, truncated and foreign data is rejected.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from codetaste.rules.cache.keys import CACHE_FORMAT, KEY_BYTES

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAGIC = b"codetaste matches %d\n" % CACHE_FORMAT
_SUM_BYTES = 32

Region = tuple[int, int, int, int]
"""First and last line, first and last column of a match."""


class DamagedEntry(ValueError):
    """The bytes are not a valid cache entry."""


@dataclass(frozen=True, slots=True)
class FileAnswer:
    """The answer of one call of the engine for one file.

    Attributes:
        scanned: the engine scanned the file.
        matches: the matches of each rule that has any, by rule key.
        problems: message and line of each piece that the engine could not parse.
    """

    scanned: bool
    matches: Mapping[bytes, tuple[Region, ...]] = field(default_factory=dict)
    problems: tuple[tuple[str, int], ...] = ()


SCANNED_WITHOUT_MATCH, NOT_SCANNED = FileAnswer(scanned=True), FileAnswer(scanned=False)
"""The answers for files without matches and problems: nearly all files."""


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """The answers for ``files`` (by key) with one set of ``rules`` (keys, sorted, possibly repeated)."""

    rules: tuple[bytes, ...]
    files: Mapping[bytes, FileAnswer]

    def to_bytes(self) -> bytes:
        """Return the entry as bytes."""
        positions = {key: number for number, key in enumerate(self.rules)}
        found = {
            number: (
                [[positions[key], *map(list, regions)] for key, regions in answer.matches.items()],
                answer.problems,
            )
            for number, answer in enumerate(self.files.values())
            if answer.matches or answer.problems
        }
        head = {"rules": len(self.rules), "files": len(self.files), "answers": found}
        body = b"".join((
            json.dumps(head, separators=(",", ":")).encode(),
            b"\n",
            *self.rules,
            *self.files,
            bytes(answer.scanned for answer in self.files.values()),
        ))  # fmt: skip
        return _MAGIC + hashlib.sha256(body).digest() + body

    @classmethod
    def from_bytes(cls, data: bytes) -> CacheEntry:
        """Parse the result of ``to_bytes``.

        Raises:
            DamagedEntry: ``data`` is not a valid entry.
        """
        start = len(_MAGIC) + _SUM_BYTES
        body = data[start:]
        if data[: len(_MAGIC)] != _MAGIC or hashlib.sha256(body).digest() != data[len(_MAGIC) : start]:
            raise DamagedEntry
        try:
            return cls._read(body)
        except (ValueError, LookupError, TypeError):
            raise DamagedEntry from None

    @classmethod
    def _read(cls, body: bytes) -> CacheEntry:
        line, _, rest = body.partition(b"\n")
        head = json.loads(line)
        rules_end = head["rules"] * KEY_BYTES
        files_end = rules_end + head["files"] * KEY_BYTES
        rules = _keys(rest[:rules_end])
        keys = _keys(rest[rules_end:files_end])
        flags = rest[files_end:]
        files = {
            key: SCANNED_WITHOUT_MATCH if flag else NOT_SCANNED for key, flag in zip(keys, flags, strict=True)
        }
        for number, (matches, problems) in head["answers"].items():
            position = int(number)
            files[keys[position]] = FileAnswer(
                scanned=bool(flags[position]),
                matches={
                    rules[rule]: tuple((first, last, start, end) for first, last, start, end in regions)
                    for rule, *regions in matches
                },
                problems=tuple((str(message), int(where)) for message, where in problems),
            )
        return cls(tuple(rules), files)


def _keys(data: bytes) -> list[bytes]:
    return [data[start : start + KEY_BYTES] for start in range(0, len(data), KEY_BYTES)]
