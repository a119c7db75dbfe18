"""Results of a scan, and the protocols that full and incremental scanners implement."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan.targets import ScanTargets
    from codetaste.source.tree.overlay import OverlayTree


Line = tuple[str, int]
"""A path below the tree (POSIX, surrogateescape for bytes that are not UTF-8) and a line number from 1."""


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """One witness ω of a rule (CodeTaste §3.4); ``start_line`` and ``end_line`` count from 1, inclusive."""

    rule_id: str
    path: str
    start_line: int
    end_line: int
    start_column: int = 0
    end_column: int = 0


class ScanProblemKind(StrEnum):
    """Why a rule or a file was not scanned in full."""

    RULE = "rule"
    """The rule is broken, or has too many matches in one file; without an id all rules together have."""
    PARSE = "parse"
    """A file did not parse: routine."""
    SYMBOLS = "symbols"
    """The engine stopped propagating symbols through a huge function of a file that did parse: routine."""
    SKIPPED = "skipped"
    """A file is too large or unreadable."""
    TIMEOUT = "timeout"
    """A time limit was exceeded."""
    ENGINE = "engine"
    """The engine crashed."""


_PARTIAL = frozenset({ScanProblemKind.RULE, ScanProblemKind.TIMEOUT, ScanProblemKind.ENGINE})


@dataclass(frozen=True, slots=True, order=True)
class ScanProblem:
    """A rule or a file that was not scanned in full; ``rule_id`` and ``path`` are "" if unknown."""

    kind: ScanProblemKind
    message: str
    rule_id: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True)
class ScanResult:
    """The result of scanning one tree with some rules.

    Attributes:
        matches: Ω(γ, R) of every rule, sorted.
        problems: everything that was not scanned in full; a scanner returns them sorted.
        scanned: paths that the engine scanned.
    """

    matches: tuple[Match, ...]
    problems: tuple[ScanProblem, ...] = ()
    scanned: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def by_rule(self) -> dict[str, list[Match]]:
        """The matches of each rule that has any, in order."""
        grouped: dict[str, list[Match]] = {}
        for match in self.matches:
            grouped.setdefault(match.rule_id, []).append(match)
        return grouped

    @property
    def partial(self) -> bool:
        """True if matches may be missing: the engine crashed, a rule failed or a limit was exceeded."""
        return any(problem.kind in _PARTIAL for problem in self.problems)

    def failures(self, rule_id: str) -> tuple[ScanProblem, ...]:
        """Return the problems that may hide matches of this rule; empty if its count is exact."""
        concerned = {"", rule_id}
        return tuple(p for p in self.problems if p.kind in _PARTIAL and p.rule_id in concerned)

    def count(self, rule_id: str) -> int:
        """M(γ, R): the number of witnesses of the rule (CodeTaste §3.4)."""
        return len(self.by_rule.get(rule_id, ()))

    def coverage(self, rule_id: str) -> frozenset[Line]:
        """C(γ, R): the lines that at least one witness of the rule covers (CodeTaste §3.4)."""
        return frozenset(
            (match.path, line)
            for match in self.by_rule.get(rule_id, ())
            for line in range(match.start_line, match.end_line + 1)
        )


class Scanner(Protocol):
    """Scans trees; the result is always that of a full scan."""

    async def scan(self, rules: Sequence[Rule], tree: Path | OverlayTree) -> ScanResult:
        """Scan ``tree`` (a folder, or R with a patch) with ``rules``, whose ids are unique.

        Raises:
            EngineError: the engine could not be run at all; other faults are in ``problems``.
        """
        ...


class RuleMatcher(Protocol):
    """Matches rules against given files of a tree (``opengrep.OpenGrep``)."""

    async def match(self, rules: Sequence[Rule], tree: Path, files: Sequence[str]) -> ScanResult:
        """Match ``rules`` against ``files``, POSIX paths below ``tree``."""
        ...


def with_skipped(scan: ScanResult, selection: ScanTargets) -> ScanResult:
    """Return ``scan`` with a problem added for each skipped file, all problems sorted."""
    skipped = (ScanProblem(ScanProblemKind.SKIPPED, reason, path=path) for path, reason in selection.skipped)
    return ScanResult(scan.matches, tuple(sorted({*skipped, *scan.problems})), scan.scanned)


def merge_scans(scans: Iterable[ScanResult]) -> ScanResult:
    """Combine several scans of one tree; no match may be in two of them."""
    scans = list(scans)
    return ScanResult(
        matches=tuple(sorted(match for scan in scans for match in scan.matches)),
        problems=tuple(dict.fromkeys(problem for scan in scans for problem in scan.problems)),
        scanned=frozenset().union(*(scan.scanned for scan in scans)),
    )
