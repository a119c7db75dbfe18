"""Results of rule registration, and registered rules, as plain data for the journal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from typing import TYPE_CHECKING, Any

from codetaste.rules.rule import Rule, make_rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.rules.scan import Line


class Direction(StrEnum):
    """Kind of a rule: it matches patterns that the refactoring introduces, or that it removes."""

    ADDITIVE = "additive"
    REDUCTIVE = "reductive"


@dataclass(frozen=True, slots=True)
class Witness:
    """A match that makes a rule invalid; ``text`` is "" if the agent must not see it."""

    path: str
    start_line: int
    end_line: int
    text: str = ""


@dataclass(frozen=True, slots=True)
class RegisteredRule:
    """An accepted rule: its body, both match counts, and the lines it covers in the tree where it matches."""

    id: str
    body: Mapping[str, Any]
    base_count: int
    golden_count: int
    coverage: frozenset[Line]

    def to_json(self) -> dict[str, Any]:
        """Return JSON data; lines as ``[first, last]`` pairs per path."""
        return {
            "id": self.id,
            "body": dict(self.body),
            "base_count": self.base_count,
            "golden_count": self.golden_count,
            "coverage": _ranges(self.coverage),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RegisteredRule:
        """Inverse of ``to_json``."""
        lines = frozenset(
            (path, line)
            for path, ranges in data["coverage"].items()
            for first, last in ranges
            for line in range(first, last + 1)
        )
        return cls(data["id"], data["body"], data["base_count"], data["golden_count"], lines)

    def to_rule(self) -> Rule:
        """Return the rule as published, with both counts in its metadata."""
        counts = {"nr_refactored_patterns": self.golden_count, "nr_legacy_patterns": self.base_count}
        return make_rule({**self.body, "metadata": {**(self.body.get("metadata") or {}), **counts}})


@dataclass(frozen=True, slots=True)
class CandidateResult:
    """The registration result of one candidate.

    Attributes:
        rule_id: its id.
        accepted: True if it was registered.
        base_count: M(γ, R), None where it could not be counted.
        golden_count: M(γ, R∘X*), None where it could not be counted.
        reason: why it was rejected, "" when accepted.
        error: the engine's error if the rule was not scanned in full; without text of either tree.
        witness: a match to exempt, for a rule that is discriminative but not valid.
    """

    rule_id: str
    accepted: bool
    base_count: int | None
    golden_count: int | None
    reason: str = ""
    error: str = ""
    witness: Witness | None = None


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """The results of all candidates of one call, and all rules registered after it."""

    candidates: tuple[CandidateResult, ...]
    registered_rules: tuple[RegisteredRule, ...]


def _ranges(lines: frozenset[Line]) -> dict[str, list[list[int]]]:
    found: dict[str, list[list[int]]] = {}
    for path, group in groupby(sorted(lines), key=lambda line: line[0]):
        ranges = found.setdefault(path, [])
        for _, number in group:
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
    return found


def format_match_count(count: int) -> str:
    """Return ``count`` as text, for example "1 match" or "2,000 matches"."""
    return f"{count:,} match{'' if count == 1 else 'es'}"
