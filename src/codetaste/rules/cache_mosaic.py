"""Laying sheets together until they answer about files as one call of the engine with all rules would.

What one call says of a file depends on the other rules of that call in three ways: what did not parse is told
once for all of them; the engine drops all matches in a file that has too many; and it tells that it looked at
a file, but not for which rule. So an answer is put together from several sheets only where no more than one
of them has matches in the file, and none has problems with it. Other files are asked about again.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from codetaste.rules.cache_sheet import LEFT_ALONE, LOOKED_AT, Said, Sheet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from codetaste.rules.cache_sheet import Region


@dataclass(slots=True)
class _Part:
    """What is known of a file so far; ``covered`` has a bit for each rule that has answered."""

    covered: int = 0
    matches: dict[bytes, tuple[Region, ...]] = field(default_factory=dict)
    scanned: bool = False
    unsure: bool = False
    torn: bool = False


class Gap(NamedTuple):
    """Rules that have not answered about files, by key."""

    rules: frozenset[bytes]
    files: list[bytes]


class Mosaic:
    """The answers about ``files`` under ``rules``, all by key."""

    def __init__(self, rules: Iterable[bytes], files: Iterable[bytes]) -> None:
        self.rules = tuple(sorted(rules))
        self.answers: dict[bytes, Said] = {}
        self._bits = {key: 1 << number for number, key in enumerate(dict.fromkeys(self.rules))}
        self._all = (1 << len(self._bits)) - 1
        self._repeated = {key for key, times in Counter(self.rules).items() if times > 1}
        self._open: dict[bytes, _Part | None] = dict.fromkeys(files)

    def lay(self, sheet: Sheet) -> bool:
        """Take from ``sheet`` what it adds; returns whether it was about exactly these rules."""
        if sheet.rules == self.rules:
            known = sheet.files
            found = {key: known[key] for key in self._open if key in known}
            self.answers |= found
            self._open = {key: part for key, part in self._open.items() if key not in found}
            return True
        bits = sum({key: self._bits[key] for key in sheet.rules if key in self._bits}.values())
        ours = all(key in self._bits for key in sheet.rules)
        for key, part in self._open.items():
            said = sheet.files.get(key)
            if said is None or not bits & ~(part.covered if part else 0):
                continue
            part = part or _Part()  # noqa: PLW2901 - it is put back
            self._open[key] = part
            self._add(part, said, bits, ours=ours)
        return False

    def _add(self, part: _Part, said: Said, bits: int, *, ours: bool) -> None:
        fresh = bits & ~part.covered
        part.covered |= bits
        added = {key: where for key, where in said.matches.items() if self._bits.get(key, 0) & fresh}
        part.torn |= bool(said.problems or (added and (part.matches or not self._repeated.isdisjoint(added))))
        part.matches |= added
        part.scanned |= said.scanned and (ours or bool(added))
        part.unsure |= said.scanned

    def tear(self, files: Iterable[bytes]) -> None:
        """Have ``files``, as far as they are still open, asked about again."""
        for key in files:
            if part := self._open.get(key):
                part.torn = True

    @property
    def complete(self) -> bool:
        """Whether nothing is left to ask."""
        return not self._open

    def gap(self) -> Gap | None:
        """The largest set of files about which the same rules, but not all, have yet to answer."""
        lacking = {
            key: self._all & ~part.covered
            for key, part in self._open.items()
            if part and not part.torn and part.covered != self._all
        }
        if not lacking:
            return None
        (most, _), *_ = Counter(lacking.values()).most_common(1)
        rules = frozenset(key for key, bit in self._bits.items() if bit & most)
        return Gap(rules, [key for key, bits in lacking.items() if bits == most])

    def rest(self) -> list[bytes]:
        """The files about which all rules have to be asked at once."""
        return [key for key, part in self._open.items() if not part or part.torn or part.covered != self._all]

    def doubtful(self) -> list[bytes]:
        """Of the other files, those of which nobody can say whether the engine would look at them."""
        return [key for key, part in self._open.items() if part and part.unsure and not part.scanned]

    def close(self, scanned: Mapping[bytes, bool]) -> dict[bytes, Said]:
        """Make answers of everything that is still open; ``scanned`` is for the doubtful. Returns these."""
        made = {}
        for key, part in self._open.items():
            assert part is not None  # noqa: S101 - ``rest`` was asked about
            if part.matches:
                made[key] = Said(scanned=True, matches=part.matches)
            else:
                made[key] = LOOKED_AT if scanned.get(key, part.scanned) else LEFT_ALONE
        self.answers |= made
        self._open = {}
        return made


def by_use(sheets: Sequence[Sheet], rules: Iterable[bytes]) -> list[Sheet]:
    """Order ``sheets`` by how many of ``rules`` they answer for, most first."""
    wanted = frozenset(rules)
    return sorted(sheets, key=lambda sheet: -len(wanted.intersection(sheet.rules)))
