"""Finding what is at fault, against an engine of which we know which pairs of rule and file kill it."""

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


class Machine:
    """Dies of some pairs of rule and file (a file "" is the rule alone); a death costs all its time."""

    def __init__(self, deadly: Pairs) -> None:
        self.deadly, self.now, self.deaths, self.attempts = deadly, 0.0, 0, 0

    async def attempt(
        self, rules: Sequence[Rule], files: Sequence[str], limit_s: float
    ) -> ScanResult | FailedAttempt:
        self.attempts += 1
        await anyio.lowlevel.checkpoint()
        if any((rule.id, file) in self.deadly for rule in rules for file in ["", *files]):
            self.deaths += 1
            self.now += limit_s
            return FailedAttempt(ScanProblemKind.TIMEOUT, f"no answer in {limit_s:.0f} s")
        self.now += 0.1
        return ScanResult(tuple(sorted(Match(rule.id, file, 1, 1) for rule in rules for file in files)))


def search(
    rules: list[str], files: list[str], deadly: Pairs, extra_s: float = 600.0
) -> tuple[Machine, ScanResult]:
    machine = Machine(deadly)
    made = [rule(name) for name in rules]

    async def main() -> ScanResult:
        first = FailedAttempt(ScanProblemKind.TIMEOUT, "no answer")
        return await bisect_failure(
            machine.attempt, made, files, first, extra_s=extra_s, clock=lambda: machine.now
        )

    return machine, anyio.run(main)


RULES = [f"r{n:02d}" for n in range(40)]
FILES = [f"f{n:03d}" for n in range(100)]


def test_one_pair_is_named_and_everything_else_is_answered() -> None:
    machine, found = search(RULES, FILES, {("r17", "f042")})
    assert [(p.rule_id, p.path) for p in found.problems] == [("r17", "f042")]
    assert len(found.matches) == 40 * 100 - 1
    assert machine.deaths < 16
    assert machine.now < 620


def test_a_rule_that_cannot_even_be_read_is_named() -> None:
    _, found = search(RULES, FILES, {("r17", ""), ("r30", "")})
    assert [(p.rule_id, p.path) for p in found.problems] == [("r17", ""), ("r30", "")]
    assert len(found.matches) == 38 * 100


def test_a_file_that_is_bad_for_every_rule_leaves_the_other_files() -> None:
    _, found = search(RULES, FILES, {(name, "f007") for name in RULES})
    assert {p.path for p in found.problems} == {"f007"}
    assert {p.rule_id for p in found.problems} == set(RULES)
    assert len(found.matches) == 40 * 99


def test_a_rule_that_dies_of_every_file_leaves_the_other_rules() -> None:
    _, found = search(RULES, FILES, {("r05", name) for name in FILES})
    assert {p.rule_id for p in found.problems} == {"r05"}
    assert {m.rule_id for m in found.matches} == set(RULES) - {"r05"}
    assert len(found.matches) >= 39 * 100


def test_time_and_patience_are_bounded() -> None:
    hopeless = {(name, file) for name in RULES for file in FILES}
    machine, found = search(RULES, FILES, hopeless, extra_s=100)
    assert machine.deaths <= MAX_FAILURES
    assert machine.now < 110
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
    machine, found = search(names, paths, deadly, extra_s)
    wanted = {(name, path) for name in names for path in paths}
    answered = {(match.rule_id, match.path) for match in found.matches}
    assert len(answered) == len(found.matches)
    assert answered <= wanted - deadly
    blamed = {problem.rule_id for problem in found.problems}
    assert {name for name, _ in wanted - answered} <= blamed
    assert machine.deaths <= MAX_FAILURES
