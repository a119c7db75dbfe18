"""Registration of candidate rules (CodeTaste §3.4 and A.3): validity and distinctness.

A valid additive rule matches in R∘X* and not in R, a valid reductive rule in R and not in R∘X*. A distinct
rule covers lines, in the tree where it matches, that overlap those of every registered rule by at most 0.95
(Jaccard). All functions are pure.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.rules.verdict import (
    CandidateResult,
    Direction,
    RegisteredRule,
    RegistrationResult,
    Witness,
    format_match_count,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan import Line, Match, ScanProblem, ScanResult

MAX_OVERLAP = (19, 20)
"""0.95 as an exact fraction."""
WITNESS_FACTOR = 10
MAX_ERROR_CHARS = 400

_GENERAL = {
    "timeout": "the engine ran out of time with this rule; make the pattern cheaper",
    "engine": "the engine crashed with this rule; make the pattern simpler",
}


def overlap_allowed(one: frozenset[Line], other: frozenset[Line]) -> bool:
    """True when the Jaccard overlap (shared lines over all lines) is at most 0.95 (CodeTaste A.3)."""
    shared = len(one & other)
    return shared * MAX_OVERLAP[1] <= MAX_OVERLAP[0] * (len(one) + len(other) - shared)


def jaccard(one: frozenset[Line], other: frozenset[Line]) -> float:
    """Return shared lines over all lines, 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


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
        error = _error(failures)
        return reject(reason="it could not be scanned in full", error=error)
    if any(rule.id == rule_id for rule in known):
        reason = f"the id {rule_id} is registered already; choose another for another rule"
        return reject(reason=reason)
    additive = direction is Direction.ADDITIVE
    there, gone = (golden, base) if additive else (base, golden)
    there_name, gone_name = ("refactored", "base") if additive else ("base", "refactored")
    wanted, unwanted = there.count(rule_id), gone.count(rule_id)
    if not wanted or unwanted:
        reason = _invalid(wanted, unwanted, there_name, gone_name)
        witness = _witness(gone.by_rule[rule_id]) if wanted > WITNESS_FACTOR * unwanted > 0 else None
        return reject(reason=reason, witness=witness)
    coverage = there.coverage(rule_id)
    for rule in known:
        if not overlap_allowed(coverage, rule.coverage):
            share = jaccard(coverage, rule.coverage)
            reason = (
                f"its lines overlap those of the registered {rule.id} by {share:.3f}; at most 0.95 is allowed"
            )
            return reject(reason=reason)
    return CandidateResult(rule_id, accepted=True, base_count=counts[0], golden_count=counts[1])


def _invalid(wanted: int, unwanted: int, there: str, gone: str) -> str:
    if unwanted and not wanted:
        return f"it matches in the {gone} code, where it must not, and not in the {there} code, where it must"
    if unwanted:
        return f"it must not match in the {gone} code, where it has {format_match_count(unwanted)}"
    return f"it matches nothing in the {there} code"


def _error(failures: Mapping[str, tuple[ScanProblem, ...]]) -> str:
    """Return why a rule was not scanned; only engine errors about the rule are quoted (DESIGN §8)."""
    for side, problems in failures.items():
        for problem in problems:
            if problem.kind == "rule" and not problem.path:
                return problem.message[:MAX_ERROR_CHARS]
            if problem.kind == "rule":
                return f"it has too many matches in one file of the {side} code; make the pattern narrower"
    kinds = {problem.kind for problems in failures.values() for problem in problems}
    return _GENERAL["timeout" if "timeout" in kinds else "engine"]


def _witness(matches: Sequence[Match]) -> Witness:
    match = min(matches, key=lambda match: (match.end_line - match.start_line, match))
    return Witness(match.path, match.start_line, match.end_line)
