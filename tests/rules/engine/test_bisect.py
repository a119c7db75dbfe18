"""Bisection of engine failures, with an engine that fails for known pairs of rule and file."""

from __future__ import annotations

from collections.abc import Sequence

import anyio
import anyio.lowlevel
from hypothesis import given
from hypothesis import strategies as st

from codetaste.rules.engine.bisect import MAX_FAILURES, FailedAttempt, bisect_failure
from codetaste.rules.rule import Rule
from codetaste.rules.scan.model import Match, ScanProblemKind, ScanResult
from support.rules.scan_cases import rule

Pairs = set[tuple[str, str]]


class FailingEngine:
    """Fails for some pairs of rule and file ("" means the rule alone); a failure takes the whole limit."""

    def __init__(self, deadly: Pairs) -> None:
        self.deadly, self.now, self.failures, self.attempts = deadly, 0.0, 0, 0

    async def attempt(
        self, rules: Sequence[Rule], files: Sequence[str], limit_s: float
    ) -> ScanResult | FailedAttempt:
        self.attempts += 1
        await anyio.lowlevel.checkpoint()
        if any((rule.id, file) in self.deadly for rule in rules for file in ["", *files]):
            self.failures += 1
            self.now += limit_s
            return FailedAttempt(ScanProblemKind.TIMEOUT, f"no answer in {limit_s:.0f} s")
        self.now += 0.1
        return ScanResult(tuple(sorted(Match(rule.id, file, 1, 1) for rule in rules for file in files)))


def search(
    rules: list[str], files: list[str], deadly: Pairs, extra_s: float = 600.0
) -> tuple[FailingEngine, ScanResult]:
    engine = FailingEngine(deadly)
    parsed = [rule(name) for name in rules]

    async def main() -> ScanResult:
        first = FailedAttempt(ScanProblemKind.TIMEOUT, "no answer")
        return await bisect_failure(
            engine.attempt, parsed, files, first, extra_s=extra_s, clock=lambda: engine.now
        )

    return engine, anyio.run(main)


RULES = [f"r{n:02d}" for n in range(40)]
FILES = [f"f{n:03d}" for n in range(100)]


def test_failing_pair_is_named_and_all_others_are_answered() -> None:
    engine, found = search(RULES, FILES, {("r17", "f042")})
    assert [(p.rule_id, p.path) for p in found.problems] == [("r17", "f042")]
    assert len(found.matches) == 40 * 100 - 1
    assert engine.failures < 16
    assert engine.now < 620


def test_unreadable_rule_is_named() -> None:
    _, found = search(RULES, FILES, {("r17", ""), ("r30", "")})
    assert [(p.rule_id, p.path) for p in found.problems] == [("r17", ""), ("r30", "")]
    assert len(found.matches) == 38 * 100


def test_file_that_fails_every_rule_does_not_affect_other_files() -> None:
    _, found = search(RULES, FILES, {(name, "f007") for name in RULES})
    assert {p.path for p in found.problems} == {"f007"}
    assert {p.rule_id for p in found.problems} == set(RULES)
    assert len(found.matches) == 40 * 99


def test_rule_that_fails_every_file_does_not_affect_other_rules() -> None:
    _, found = search(RULES, FILES, {("r05", name) for name in FILES})
    assert {p.rule_id for p in found.problems} == {"r05"}
    assert {m.rule_id for m in found.matches} == set(RULES) - {"r05"}
    assert len(found.matches) >= 39 * 100


def test_time_and_failures_are_bounded() -> None:
    hopeless = {(name, file) for name in RULES for file in FILES}
    engine, found = search(RULES, FILES, hopeless, extra_s=100)
    assert engine.failures <= MAX_FAILURES
    assert engine.now < 110
    assert {p.rule_id for p in found.problems} == set(RULES)


@given(
    st.integers(1, 6),
    st.integers(0, 8),
    st.sets(st.tuples(st.integers(0, 5), st.integers(-1, 7)), max_size=4),
    st.floats(1, 100),
)
def test_bisection_gives_answer_or_problem_for_every_rule(
    rules: int, files: int, pairs: set[tuple[int, int]], extra_s: float
) -> None:
    names, paths = RULES[:rules], FILES[:files]
    deadly = {(RULES[r], "" if f < 0 else FILES[f]) for r, f in pairs}
    engine, found = search(names, paths, deadly, extra_s)
    expected = {(name, path) for name in names for path in paths}
    answered = {(match.rule_id, match.path) for match in found.matches}
    assert len(answered) == len(found.matches)
    assert answered <= expected - deadly
    blamed = {problem.rule_id for problem in found.problems}
    assert {name for name, _ in expected - answered} <= blamed
    assert engine.failures <= MAX_FAILURES
