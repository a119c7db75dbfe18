"""Scanning a tree with rules: what comes out, and the seam behind which full and incremental scans live."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from codetaste.rules.rule import Rule

Line = tuple[str, int]
"""A path below the tree (POSIX, surrogateescape for bytes that are not UTF-8) and a line number from 1."""


@dataclass(frozen=True, slots=True, order=True)
class Match:
    """One witness ω of a rule (CodeTaste §3.4): ``start_line`` and ``end_line`` count from 1, inclusive."""

    rule_id: str
    path: str
    start_line: int
    end_line: int
    start_column: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that kept a rule or a file from being scanned in full.

    ``kind`` is "rule" (the rule is broken), "parse" (a file did not parse, routine), "skipped" (too large,
    unreadable), "timeout" (our wall clock ended it) or "engine" (a crash). ``rule_id`` and ``path`` are ""
    where unknown.
    """

    kind: str
    message: str
    rule_id: str = ""
    path: str = ""
    line: int = 0


@dataclass(frozen=True)
class Scan:
    """What scanning one tree with some rules found.

    Attributes:
        matches: Ω(γ, R) of every rule, sorted.
        problems: everything that was not scanned in full.
        scanned: paths that the engine looked at.
    """

    matches: tuple[Match, ...]
    problems: tuple[Problem, ...] = ()
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
        """True when matches may be missing: the engine crashed, a rule failed or time ran out."""
        return any(problem.kind in {"rule", "timeout", "engine"} for problem in self.problems)

    def count(self, rule_id: str) -> int:
        """M(γ, R): how many witnesses the rule has (CodeTaste §3.4)."""
        return len(self.by_rule.get(rule_id, ()))

    def coverage(self, rule_id: str) -> frozenset[Line]:
        """C(γ, R): the lines that at least one witness of the rule covers (CodeTaste §3.4)."""
        return frozenset(
            (match.path, line)
            for match in self.by_rule.get(rule_id, ())
            for line in range(match.start_line, match.end_line + 1)
        )


class Scanner(Protocol):
    """Anything that scans trees; the answer is that of a full scan, however it was come by."""

    async def scan(self, rules: Sequence[Rule], tree: Path) -> Scan:
        """Scan ``tree`` (a folder) with ``rules``, whose ids are unique.

        Raises:
            EngineError: the engine could not be run at all; lesser trouble is in ``problems``.
        """
        ...
