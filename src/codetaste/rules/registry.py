"""Which candidate rules are registered (CodeTaste §3.4 and A.3): validity and distinctness.

An additive rule matches in R∘X* and not in R, a reductive one the other way round; the lines it covers on the
side where it matches overlap those of every registered rule by at most 0.95 (Jaccard). Everything here is a
pure function of scans and of what is registered already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.rules.verdict import Direction, Judgement, Registered, Verdict, Witness, times

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.rules.rule import Rule
    from codetaste.rules.scan import Line, Match, Problem, Scan

MAX_OVERLAP = (19, 20)
"""0.95 as an exact fraction."""
WITNESS_FACTOR = 10
MAX_ERROR = 400

_GENERAL = {
    "timeout": "the engine ran out of time with this rule; make the pattern cheaper",
    "engine": "the engine crashed with this rule; make the pattern simpler",
}


def overlap_allowed(one: frozenset[Line], other: frozenset[Line]) -> bool:
    """True when the Jaccard overlap (shared lines over all lines) is at most 0.95 (CodeTaste A.3)."""
    shared = len(one & other)
    return shared * MAX_OVERLAP[1] <= MAX_OVERLAP[0] * (len(one) + len(other) - shared)


def jaccard(one: frozenset[Line], other: frozenset[Line]) -> float:
    """Shared lines over all lines, 0 for two empty sets."""
    union = len(one | other)
    return len(one & other) / union if union else 0.0


def judge(
    direction: Direction,
    candidates: Sequence[Rule],
    base: Scan,
    golden: Scan,
    registered: Sequence[Registered] = (),
) -> Judgement:
    """Decide about ``candidates`` in the order given; one that is accepted counts for those after it.

    Args:
        direction: what the rules must speak of.
        candidates: as they were submitted.
        base: the scan of R with them.
        golden: the scan of R∘X* with them.
        registered: what was accepted before.
    """
    verdicts: list[Verdict] = []
    known = list(registered)
    for rule in candidates:
        verdict = _judge_one(direction, rule.id, base, golden, known)
        verdicts.append(verdict)
        if verdict.accepted:
            side = golden if direction is Direction.ADDITIVE else base
            counts = base.count(rule.id), golden.count(rule.id)
            known.append(Registered(rule.id, rule.body, *counts, side.coverage(rule.id)))
    return Judgement(tuple(verdicts), tuple(known))


def _judge_one(
    direction: Direction, rule_id: str, base: Scan, golden: Scan, known: Sequence[Registered]
) -> Verdict:
    failures = {"base": base.failures(rule_id), "refactored": golden.failures(rule_id)}
    counts = (
        None if failures["base"] else base.count(rule_id),
        None if failures["refactored"] else golden.count(rule_id),
    )
    if any(failures.values()):
        error = _error(failures)
        return Verdict(rule_id, False, *counts, "it could not be scanned in full", error)  # noqa: FBT003
    if any(rule.id == rule_id for rule in known):
        reason = f"the id {rule_id} is registered already; choose another for another rule"
        return Verdict(rule_id, False, *counts, reason)  # noqa: FBT003
    additive = direction is Direction.ADDITIVE
    there, gone = (golden, base) if additive else (base, golden)
    there_name, gone_name = ("refactored", "base") if additive else ("base", "refactored")
    wanted, unwanted = there.count(rule_id), gone.count(rule_id)
    if not wanted or unwanted:
        reason = _invalid(wanted, unwanted, there_name, gone_name)
        witness = _witness(gone.by_rule[rule_id]) if wanted > WITNESS_FACTOR * unwanted > 0 else None
        return Verdict(rule_id, False, *counts, reason, witness=witness)  # noqa: FBT003
    coverage = there.coverage(rule_id)
    for rule in known:
        if not overlap_allowed(coverage, rule.coverage):
            share = jaccard(coverage, rule.coverage)
            reason = (
                f"its lines overlap those of the registered {rule.id} by {share:.3f}; at most 0.95 is allowed"
            )
            return Verdict(rule_id, False, *counts, reason)  # noqa: FBT003
    return Verdict(rule_id, True, *counts)  # noqa: FBT003


def _invalid(wanted: int, unwanted: int, there: str, gone: str) -> str:
    if unwanted and not wanted:
        return f"it matches in the {gone} code, where it must not, and not in the {there} code, where it must"
    if unwanted:
        return f"it must not match in the {gone} code, where it has {times(unwanted)}"
    return f"it matches nothing in the {there} code"


def _error(failures: Mapping[str, tuple[Problem, ...]]) -> str:
    """Why a rule has no answer: of the engine only what it says of the rule itself is quoted (DESIGN §8)."""
    for side, problems in failures.items():
        for problem in problems:
            if problem.kind == "rule" and not problem.path:
                return problem.message[:MAX_ERROR]
            if problem.kind == "rule":
                return f"it has too many matches in one file of the {side} code; make the pattern narrower"
    kinds = {problem.kind for problems in failures.values() for problem in problems}
    return _GENERAL["timeout" if "timeout" in kinds else "engine"]


def _witness(matches: Sequence[Match]) -> Witness:
    """The smallest match, the first of several."""
    match = min(matches, key=lambda match: (match.end_line - match.start_line, match))
    return Witness(match.path, match.start_line, match.end_line)
