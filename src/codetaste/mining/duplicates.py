"""The same change several times: in forks, as cherry-picks, as reverts and when it is made again.

Of each group the earliest commit stays, so that a change which a model may have seen does not come back under
a later date. A commit belongs to the group of another one if

- both have the same hash, in two repositories (a fork);
- both have the same ``change_id``: they remove the same lines from the same files, and add the same;
- it has the ``change_id`` of the other one's reversal, or its message says that it reverts the other one;
- its message says that it was cherry-picked from the other one, or makes it again.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter, defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from codetaste.core.text import shorten
from codetaste.mining.filter_result import FilterResult, Stage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.mining.commit import CommitRecord
    from codetaste.mining.prefilter.diff import CommitDiff

_WHITE_SPACE = b" \t\r\n\v\f"
_FILE = re.compile(rb"^diff --git ", re.MULTILINE)
_RENAME = re.compile(rb"^rename from (.*)\nrename to (.*)$", re.MULTILINE)
_REMOVED = re.compile(rb"^-(.*)", re.MULTILINE)
_ADDED = re.compile(rb"^\+(.*)", re.MULTILINE)
_REVERTED_HASH = re.compile(r"\bthis reverts (?:commit )?([0-9a-f]{7,64})\b", re.IGNORECASE)
_PICKED_HASH = re.compile(r"\(cherry[- ]picked from (?:commit )?([0-9a-f]{7,64})\b", re.IGNORECASE)
_REPEATED_HASH = re.compile(r"\bthis (?:re-?lands|re-?applies) (?:commit )?([0-9a-f]{7,64})\b", re.IGNORECASE)
_OF_SUBJECT = re.compile(
    r"\W*(revert|roll ?back|re-?land|re-?apply)(?:ed|ing|s)?\b[\s:\]]*[\"'`“](.+)[\"'`”]\W*", re.IGNORECASE
)
_PULL_REQUEST = re.compile(r"\s*\((?:#|!)\d+\)\s*$")
_HASH_REASONS = (
    (_PICKED_HASH, "says that it was cherry-picked from"),
    (_REVERTED_HASH, "says that it reverts"),
    (_REPEATED_HASH, "says that it makes again"),
)
_MIN_HASH_DIGITS, _MIN_SUBJECT_CHARS, _SHOWN_CHARS = 7, 10, 60
_MAX_SUBJECT_CHARS = 1000
"""Of a longer first line only the beginning is compared; no title is so long."""
_LATEST = datetime.max.replace(tzinfo=UTC)


class ChangeId(NamedTuple):
    """Identity of a change and of its reversal, hex digits; "" of a change without lines."""

    forward: str
    backward: str


@dataclass(frozen=True, slots=True)
class Duplicate:
    """A commit that is left out, the commit that stays, and why they are the same change."""

    record: CommitRecord
    original: CommitRecord
    reason: str

    @property
    def result(self) -> FilterResult:
        """The duplicate as the result of a filter."""
        return FilterResult(
            Stage.PREFILTER,
            "duplicate",
            passed=False,
            value=self.original.name,
            bound="no earlier commit",
            reason=self.reason,
        )


@dataclass(frozen=True, slots=True)
class Deduplicated:
    """The commits that stay, in their order, and those that are left out."""

    unique: tuple[CommitDiff, ...]
    duplicates: tuple[Duplicate, ...]


def change_id(context_free_diff: bytes) -> ChangeId:
    """Return the identity of a change. Like git's ``patch-id`` it ignores white space and line numbers.

    Unlike there, the order of lines does not matter, and a line that a file loses and gets is unchanged:
    git's comparison of a reversed change is not always the reversed comparison, but these lines are. Neither
    the order of files nor binary files matter.
    """
    forward, backward = [], []
    for section in _FILE.split(context_free_diff)[1:]:
        header, hunk, body = section.partition(b"\n@@ ")
        body = hunk + body
        rename = _RENAME.search(header)
        name = header.partition(b"\n")[0]
        old, new = rename.groups() if rename else (name, name)
        removed, added = (_count_lines(lines.findall(body)) for lines in (_REMOVED, _ADDED))
        if removed == added and rename is None:
            continue
        digests = _digest(removed - added), _digest(added - removed)
        forward.append(hashlib.sha256(b"%s\0%s\0%s%s" % (old, new, *digests)).digest())
        backward.append(hashlib.sha256(b"%s\0%s\0%s%s" % (new, old, *reversed(digests))).digest())
    if not forward:
        return ChangeId("", "")
    return ChangeId(*(hashlib.sha256(b"".join(sorted(each))).hexdigest() for each in (forward, backward)))


def _count_lines(lines: list[bytes]) -> Counter[bytes]:
    """Count lines by their text without white space; lines without any are left out."""
    counts = Counter(line.translate(None, _WHITE_SPACE) for line in lines)
    del counts[b""]
    return counts


def _digest(lines: Counter[bytes]) -> bytes:
    return hashlib.sha256(b"".join(b"%s\0%d\0" % item for item in sorted(lines.items()))).digest()


def find_duplicates(diffs: Iterable[CommitDiff]) -> Deduplicated:
    """Leave one commit of each group of the same change: the earliest; of equal dates that with most stars.

    A commit without a date is later than all others. Further ties are decided by repository, then by hash, so
    the order of ``diffs`` has no influence on what stays.
    """
    ordered = list(diffs)
    known = _KnownChanges()
    duplicates: dict[int, Duplicate] = {}
    for index in sorted(range(len(ordered)), key=lambda at: _age(ordered[at].record)):
        diff = ordered[index]
        identity = change_id(diff.context_free_diff)
        found = known.find(diff, identity)
        if found is not None:
            original, reason = found
            duplicates[index] = Duplicate(diff.record, original, reason)
        known.add(diff, identity, found[0] if found else diff.record)
    unique = tuple(diff for index, diff in enumerate(ordered) if index not in duplicates)
    return Deduplicated(unique, tuple(duplicates[index] for index in sorted(duplicates)))


class _KnownChanges:
    """Earlier commits, each with the original of its group."""

    def __init__(self) -> None:
        self._forward: dict[str, CommitRecord] = {}
        self._backward: dict[str, CommitRecord] = {}
        self._by_hash: defaultdict[str, list[tuple[str, CommitRecord]]] = defaultdict(list)
        self._by_subject: dict[tuple[str, str], CommitRecord] = {}

    def add(self, diff: CommitDiff, identity: ChangeId, original: CommitRecord) -> None:
        """Remember a commit."""
        record = diff.record
        if identity.forward:
            self._forward.setdefault(identity.forward, original)
            self._backward.setdefault(identity.backward, original)
        self._by_hash[diff.golden[:_MIN_HASH_DIGITS]].append((diff.golden, original))
        self._by_subject[record.repository.lower(), _subject(record)] = original

    def find(self, diff: CommitDiff, identity: ChangeId) -> tuple[CommitRecord, str] | None:
        """Return the original of the first group that a commit belongs to, and why."""
        if found := self._of_hash(diff.golden):
            same = found.repository == diff.record.repository
            return found, "the same commit" if same else "the same commit in a fork"
        if found := self._forward.get(identity.forward):
            return found, "the same lines are changed"
        if found := self._backward.get(identity.forward):
            return found, "it reverts the same lines"
        for pattern, reason in _HASH_REASONS:
            for digits in pattern.findall(diff.record.text):
                if found := self._of_hash(digits.lower()):
                    return found, f"its message {reason} {digits[:10]}"
        return self._of_message(diff.record)

    def _of_hash(self, digits: str) -> CommitRecord | None:
        near = self._by_hash[digits[:_MIN_HASH_DIGITS]]
        return next((original for golden, original in near if golden.startswith(digits)), None)

    def _of_message(self, record: CommitRecord) -> tuple[CommitRecord, str] | None:
        subject = _subject(record)
        while match := _OF_SUBJECT.fullmatch(subject):
            subject = _plain(match[2])
            if len(subject) < _MIN_SUBJECT_CHARS:
                return None
            if found := self._by_subject.get((record.repository.lower(), subject)):
                return found, f'its message names "{shorten(subject, _SHOWN_CHARS)}"'
        return None


def _subject(record: CommitRecord) -> str:
    return _plain(record.text.partition("\n")[0][:_MAX_SUBJECT_CHARS])


def _plain(subject: str) -> str:
    """Return a subject without the number of its pull request."""
    return _PULL_REQUEST.sub("", subject.strip()).strip()


def _age(record: CommitRecord) -> tuple[datetime, int, str, str]:
    return record.date or _LATEST, -(record.stars or 0), record.repository, record.golden
