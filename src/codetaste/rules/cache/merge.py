"""Combine cache entries into the answer that one call of the engine with all rules would give.

The answer of a call for a file depends on the other rules of that call in three ways: a parse failure is
reported once for all rules; the engine drops all matches in a file that has too many; and it reports that it
scanned a file, but not for which rule. So answers from several entries are combined only if at most one of
them has matches in the file, and none has problems with it. Other files are scanned again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codetaste.rules.cache.entry import NOT_SCANNED, SCANNED_WITHOUT_MATCH, CacheEntry, FileAnswer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.rules.cache.entry import Region


@dataclass(slots=True)
class _Part:
    """The partial answer for a file; ``covered`` has one bit per rule that has answered."""

    covered: int = 0
    matches: dict[bytes, tuple[Region, ...]] = field(default_factory=dict)
    scanned: bool = False
    maybe_scanned: bool = False
    invalid: bool = False


class MissingSubset(NamedTuple):
    """Rules that have not answered for some files, by key."""

    rules: frozenset[bytes]
    files: list[bytes]


class AnswerMerge:
    """Merged answers of ``rules`` for ``files``, all by key."""

    def __init__(self, rules: Iterable[bytes], files: Iterable[bytes]) -> None:
        self.rules = tuple(sorted(rules))
        self.answers: dict[bytes, FileAnswer] = {}
        self._bits = {key: 1 << number for number, key in enumerate(dict.fromkeys(self.rules))}
        self._all = (1 << len(self._bits)) - 1
        self._repeated = {key for key, times in Counter(self.rules).items() if times > 1}
        self._open: dict[bytes, _Part | None] = dict.fromkeys(files)

    def add(self, entry: CacheEntry) -> bool:
        """Add the new answers of ``entry``; return whether its rules are exactly these."""
        if entry.rules == self.rules:
            known = entry.files
            found = {key: known[key] for key in self._open if key in known}
            self.answers |= found
            self._open = {key: part for key, part in self._open.items() if key not in found}
            return True
        bits = sum({key: self._bits[key] for key in entry.rules if key in self._bits}.values())
        ours = all(key in self._bits for key in entry.rules)
        for key, part in self._open.items():
            answer = entry.files.get(key)
            if answer is None or not bits & ~(part.covered if part else 0):
                continue
            part = part or _Part()  # noqa: PLW2901 - stored on the next line
            self._open[key] = part
            self._add_answer(part, answer, bits, ours=ours)
        return False

    def _add_answer(self, part: _Part, answer: FileAnswer, bits: int, *, ours: bool) -> None:
        fresh = bits & ~part.covered
        part.covered |= bits
        added = {key: where for key, where in answer.matches.items() if self._bits.get(key, 0) & fresh}
        part.invalid |= bool(
            answer.problems or (added and (part.matches or not self._repeated.isdisjoint(added)))
        )
        part.matches |= added
        part.scanned |= answer.scanned and (ours or bool(added))
        part.maybe_scanned |= answer.scanned

    def invalidate(self, files: Iterable[bytes]) -> None:
        """Mark those of ``files`` that have no final answer, so that they are scanned again."""
        for key in files:
            if part := self._open.get(key):
                part.invalid = True

    @property
    def complete(self) -> bool:
        """Whether all files have an answer."""
        return not self._open

    def missing_subset(self) -> MissingSubset | None:
        """Return the largest set of files for which the same rules, but not all rules, have no answer yet."""
        missing_bits = {
            key: self._all & ~part.covered
            for key, part in self._open.items()
            if part and not part.invalid and part.covered != self._all
        }
        if not missing_bits:
            return None
        (most, _), *_ = Counter(missing_bits.values()).most_common(1)
        rules = frozenset(key for key, bit in self._bits.items() if bit & most)
        return MissingSubset(rules, [key for key, bits in missing_bits.items() if bits == most])

    def missing(self) -> list[bytes]:
        """Return the files that have to be scanned with all rules."""
        return [
            key for key, part in self._open.items() if not part or part.invalid or part.covered != self._all
        ]

    def uncertain(self) -> list[bytes]:
        """Return those of the other files for which it is unknown whether the engine would scan them."""
        return [key for key, part in self._open.items() if part and part.maybe_scanned and not part.scanned]

    def finish(self, scanned: Mapping[bytes, bool]) -> dict[bytes, FileAnswer]:
        """Finish and return the open answers; ``scanned``: whether the engine scans uncertain files."""
        made = {}
        for key, part in self._open.items():
            assert part is not None  # noqa: S101 - ``missing`` files were scanned before
            if part.matches:
                made[key] = FileAnswer(scanned=True, matches=part.matches)
            else:
                made[key] = SCANNED_WITHOUT_MATCH if scanned.get(key, part.scanned) else NOT_SCANNED
        self.answers |= made
        self._open = {}
        return made


def sort_by_coverage(entries: Sequence[CacheEntry], rules: Iterable[bytes]) -> list[CacheEntry]:
    """Sort ``entries`` by how many of ``rules`` they answer for, most first."""
    wanted = frozenset(rules)
    return sorted(entries, key=lambda entry: -len(wanted.intersection(entry.rules)))
