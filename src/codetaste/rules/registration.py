"""Registration of candidate rules: which are valid and distinct (CodeTaste §3.4, A.3).

The results are plain data for the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any

from codetaste.core.text import plural
from codetaste.rules.rule import Rule, make_rule
from codetaste.rules.scan.model import ScanProblemKind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.rules.scan.model import Line, ScanProblem, ScanResult

MAX_OVERLAP = (19, 20)
"""0.95 as an exact fraction."""
WITNESS_FACTOR = 10
MAX_WITNESSES = 3
MAX_ERROR_CHARS = 400
_GENERAL = {
    ScanProblemKind.TIMEOUT: "the engine ran out of time with this rule; make the pattern cheaper",
    ScanProblemKind.ENGINE: "the engine crashed with this rule; make the pattern simpler",
}


class Direction(StrEnum):
    """Kind of a rule: it matches patterns that the refactoring introduces, or that it removes."""

    ADDITIVE = "additive"
    REDUCTIVE = "reductive"


class Rejection(StrEnum):
    """Why a candidate was not registered."""

    UNREADABLE = "unreadable"
    """Its YAML could not be read."""
    NOT_SCANNED = "not_scanned"
    ID_IN_USE = "id_in_use"
    MATCHES_WRONG_TREE = "matches_wrong_tree"
    MATCHES_NOTHING = "matches_nothing"
    OVERLAPS = "overlaps"


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
            "coverage": _line_ranges(self.coverage),
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
        witnesses: the smallest matches to exempt, at most 3, for a rule that is discriminative but not valid.
        rejection: the kind of the reason, None when accepted.
    """

    rule_id: str
    accepted: bool
    base_count: int | None
    golden_count: int | None
    reason: str = ""
    error: str = ""
    witnesses: tuple[Witness, ...] = ()
    rejection: Rejection | None = None


@dataclass(frozen=True, slots=True)
class RegistrationResult:
    """The results of all candidates of one call, and all rules registered after it."""

    candidates: tuple[CandidateResult, ...]
    registered_rules: tuple[RegisteredRule, ...]


def register_candidates(
    direction: Direction,
    candidates: Sequence[Rule],
    base: ScanResult,
    golden: ScanResult,
    already_registered: Sequence[RegisteredRule] = (),
) -> RegistrationResult:
    """Register the valid and distinct rules of ``candidates``, in the order given.

    Args:
        direction: the kind of rules.
        candidates: the submitted rules.
        base: the scan of R with the candidates.
        golden: the scan of R∘X* with the candidates.
        already_registered: rules registered before.
    """
    results: list[CandidateResult] = []
    known = list(already_registered)
    for rule in candidates:
        result = _register_one(direction, rule.id, base, golden, known)
        results.append(result)
        if result.accepted:
            side = golden if direction is Direction.ADDITIVE else base
            counts = base.count(rule.id), golden.count(rule.id)
            known.append(RegisteredRule(rule.id, rule.body, *counts, side.coverage(rule.id)))
    return RegistrationResult(tuple(results), tuple(known))


def _register_one(
    direction: Direction, rule_id: str, base: ScanResult, golden: ScanResult, known: Sequence[RegisteredRule]
) -> CandidateResult:
    failures = {"base": base.failures(rule_id), "refactored": golden.failures(rule_id)}
    counts = (
        None if failures["base"] else base.count(rule_id),
        None if failures["refactored"] else golden.count(rule_id),
    )
    reject = partial(CandidateResult, rule_id, accepted=False, base_count=counts[0], golden_count=counts[1])
    if any(failures.values()):
        why = "it could not be scanned in full"
        return reject(reason=why, error=_error(failures), rejection=Rejection.NOT_SCANNED)
    if any(rule.id == rule_id for rule in known):
        why = f"the id {rule_id} is registered already; choose another for another rule"
        return reject(reason=why, rejection=Rejection.ID_IN_USE)
    additive = direction is Direction.ADDITIVE
    there, gone = (golden, base) if additive else (base, golden)
    there_name, gone_name = ("refactored", "base") if additive else ("base", "refactored")
    wanted, unwanted = there.count(rule_id), gone.count(rule_id)
    if not wanted or unwanted:
        witnesses: tuple[Witness, ...] = ()
        if wanted > WITNESS_FACTOR * unwanted > 0:
            matches = gone.by_rule[rule_id]
            smallest = sorted(matches, key=lambda match: (match.end_line - match.start_line, match))
            witnesses = tuple(
                Witness(match.path, match.start_line, match.end_line) for match in smallest[:MAX_WITNESSES]
            )
        why = _invalid(wanted, unwanted, there_name, gone_name)
        kind = Rejection.MATCHES_WRONG_TREE if unwanted else Rejection.MATCHES_NOTHING
        return reject(reason=why, witnesses=witnesses, rejection=kind)
    coverage = there.coverage(rule_id)
    for rule in known:
        if not overlap_allowed(coverage, rule.coverage):
            share = jaccard(coverage, rule.coverage)
            reason = (
                f"its lines overlap those of the registered {rule.id} by {share:.3f}; at most 0.95 is allowed"
            )
            return reject(reason=reason, rejection=Rejection.OVERLAPS)
    return CandidateResult(rule_id, accepted=True, base_count=counts[0], golden_count=counts[1])


def _invalid(wanted: int, unwanted: int, there: str, gone: str) -> str:
    if unwanted and not wanted:
        return f"it matches in the {gone} code, where it must not, and not in the {there} code, where it must"
    if unwanted:
        return f"it must not match in the {gone} code, where it has {format_match_count(unwanted)}"
    return f"it matches nothing in the {there} code"


def _error(failures: Mapping[str, tuple[ScanProblem, ...]]) -> str:
    """Return why a rule was not scanned; only engine errors about the rule are quoted."""
    for side, problems in failures.items():
        for problem in problems:
            if problem.kind is ScanProblemKind.RULE and not problem.path:
                return problem.message[:MAX_ERROR_CHARS]
            if problem.kind is ScanProblemKind.RULE:
                return f"it has too many matches in one file of the {side} code; make the pattern narrower"
    kinds = {problem.kind for problems in failures.values() for problem in problems}
    return _GENERAL[ScanProblemKind.TIMEOUT if ScanProblemKind.TIMEOUT in kinds else ScanProblemKind.ENGINE]


def overlap_allowed(one: frozenset[Line], other: frozenset[Line]) -> bool:
    """True when the Jaccard overlap (shared lines over all lines) is at most 0.95 (CodeTaste A.3)."""
    shared = len(one & other)
    return shared * MAX_OVERLAP[1] <= MAX_OVERLAP[0] * (len(one) + len(other) - shared)


def jaccard(one: frozenset[Line], other: frozenset[Line]) -> float:
    """Return shared lines over all lines, 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def _line_ranges(lines: frozenset[Line]) -> dict[str, list[list[int]]]:
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
    return plural(count, "match", "matches")
