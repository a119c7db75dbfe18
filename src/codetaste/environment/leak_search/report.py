"""The result of a search: hits, and what could not be searched."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.core.text import plural, printable
from codetaste.core.units import format_size

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_HITS = 200
"""Of which each is reported; further ones are counted."""
_MAX_EXAMPLES = 5
CONFIG = "config"
"""The place of hits in the config of an image."""


class LeakKind(StrEnum):
    """What was found."""

    SECRET = "secret"  # noqa: S105 - not one
    GOLDEN_FILE = "golden file"
    GOLDEN_LINES = "golden lines"
    GOLDEN_OBJECT = "git object"
    GOLDEN_NAMES = "compiled golden file"


@dataclass(frozen=True, slots=True)
class Leak:
    """A hit: in which layer (or "config") and file; a member of an archive is ``archive!member``."""

    kind: LeakKind
    layer: str
    path: str
    evidence: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.kind} in {self.layer[:19]}: {printable(self.path)}: {printable(self.evidence)}"


@dataclass(frozen=True, slots=True)
class NotSearched:
    """Files that were not, or not wholly, searched for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...]

    def __str__(self) -> str:
        """Return it as one line."""
        shown = ", ".join(printable(example, 120) for example in self.examples)
        return f"{plural(self.count, 'file')} not searched: {self.reason} ({shown})"


@dataclass(frozen=True, slots=True)
class LeakReport:
    """What a search found. Sizes in bytes, before members of archives are inflated.

    Attributes:
        leaks: the hits, at most ``MAX_HITS``.
        more_leaks: number of further hits.
        not_searched: what could not be searched, by reason.
        left_out: number of golden files that are not searched for, by reason.
        layers: ids of the searched layers.
        files: number of searched files, members of archives included.
        size_bytes: of the files of the layers.
    """

    leaks: tuple[Leak, ...] = ()
    more_leaks: int = 0
    not_searched: tuple[NotSearched, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    layers: tuple[str, ...] = ()
    files: int = 0
    size_bytes: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found."""
        return not self.leaks

    def __str__(self) -> str:
        """Return it as one line."""
        found = plural(len(self.leaks) + self.more_leaks, "hit")
        where = f"{plural(self.files, 'file')} of {plural(len(self.layers), 'layer')}"
        first = f"; first: {self.leaks[0]}" if self.leaks else ""
        return f"{found} in {where}, {format_size(self.size_bytes)}{first}"


@dataclass(slots=True)
class LeakCollector:
    """Collects the results of a search that is under way."""

    leaks: list[Leak] = field(default_factory=list)
    files: int = 0
    size_bytes: int = 0
    layers: list[str] = field(default_factory=list)
    _more: Counter[str] = field(default_factory=Counter)
    _skipped: Counter[str] = field(default_factory=Counter)
    _examples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, leak: Leak) -> None:
        """Add a hit."""
        if len(self.leaks) < MAX_HITS:
            self.leaks.append(leak)
        else:
            self._more[leak.layer] += 1

    def skip(self, path: str, reason: str) -> None:
        """Note that a file was not searched."""
        self._skipped[reason] += 1
        examples = self._examples.setdefault(reason, [])
        if len(examples) < _MAX_EXAMPLES:
            examples.append(path)

    def add_layer(self, layer: str, found: LeakCollector) -> None:
        """Add what was found in a layer."""
        self.layers.append(layer)
        self.files += found.files
        self.size_bytes += found.size_bytes
        for leak in found.leaks:
            self.add(replace(leak, layer=layer))
        self._more[layer] += found._more.total()
        self._skipped += found._skipped
        for reason, examples in found._examples.items():
            own = self._examples.setdefault(reason, [])
            own += examples[: _MAX_EXAMPLES - len(own)]

    def report(self, left_out: Mapping[str, int]) -> LeakReport:
        """Return the results."""
        skipped = tuple(
            NotSearched(reason, count, tuple(self._examples[reason]))
            for reason, count in sorted(self._skipped.items())
        )
        return LeakReport(
            tuple(self.leaks),
            self._more.total(),
            skipped,
            dict(left_out),
            tuple(self.layers),
            self.files,
            self.size_bytes,
        )
