"""Validity and distinctness of rules, compared with an independent brute-force model."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.rules.engine.install import RuleEngine
from codetaste.rules.feedback import add_witness_text, render_candidate_result
from codetaste.rules.registration import Direction, RegisteredRule, overlap_allowed, register_candidates
from codetaste.rules.rule import parse_rules
from codetaste.rules.scan.model import Match, ScanProblem, ScanProblemKind, ScanResult
from codetaste.rules.yaml_writer import dump_rules
from support.rules.scan_cases import MakeTree, rule, scan

Found = list[tuple[str, int, int]]
Candidate = tuple[str, Found, Found]

LINES = st.frozensets(st.tuples(st.sampled_from(["a.py", "b.py"]), st.integers(1, 30)), max_size=60)
MATCH = st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 25), st.integers(0, 6))
SIDE = st.lists(MATCH, max_size=4)
CANDIDATES = st.lists(st.tuples(st.sampled_from("pqrs"), SIDE, SIDE), max_size=6, unique_by=lambda c: c[0])


@given(LINES, LINES)
def test_overlap_limit_equals_exact_jaccard_index(
    one: frozenset[tuple[str, int]], other: frozenset[tuple[str, int]]
) -> None:
    union = one | other
    model = not union or Fraction(sum(line in other for line in one), len(union)) <= Fraction(95, 100)
    assert overlap_allowed(one, other) is model


def test_overlap_of_exactly_0_95_is_allowed() -> None:
    twenty = frozenset(("a.py", n) for n in range(20))
    assert overlap_allowed(twenty, twenty - {("a.py", 0)})
    assert not overlap_allowed(
        frozenset(("a.py", n) for n in range(41)), frozenset(("a.py", n) for n in range(39))
    )


def model(additive: bool, candidates: list[Candidate]) -> list[str]:
    """Return the ids that the paper's definition registers, with sets of lines, fractions and loops."""
    registered: dict[str, set[tuple[str, int]]] = {}
    for name, base, golden in candidates:
        there, gone = (golden, base) if additive else (base, golden)
        if len(there) == 0 or len(gone) != 0:
            continue
        covered = {(path, line) for path, start, more in there for line in range(start, start + more + 1)}
        overlaps = [Fraction(len(covered & other), len(covered | other)) for other in registered.values()]
        if all(overlap <= Fraction(19, 20) for overlap in overlaps):
            registered[name] = covered
    return list(registered)


def scans(candidates: list[Candidate]) -> tuple[ScanResult, ScanResult]:
    sides = []
    for side in (0, 1):
        found = [
            Match(name, path, start, start + more)
            for name, *both in candidates
            for path, start, more in both[side]
        ]
        sides.append(ScanResult(tuple(sorted(found))))
    return sides[0], sides[1]


@given(CANDIDATES, st.sampled_from(Direction), st.integers(0, 6))
def test_registered_rules_equal_the_paper_s_definition(
    candidates: list[Candidate],
    direction: Direction,
    first: int,
) -> None:
    base, golden = scans(candidates)
    rules = [rule(name) for name, _, _ in candidates]
    one = register_candidates(direction, rules[:first], base, golden)
    known = [
        RegisteredRule.from_json(json.loads(json.dumps(entry.to_json()))) for entry in one.registered_rules
    ]
    two = register_candidates(direction, rules[first:], base, golden, known)
    assert [entry.id for entry in two.registered_rules] == model(direction is Direction.ADDITIVE, candidates)
    for verdict, (name, in_base, in_golden) in zip(
        [*one.candidates, *two.candidates], candidates, strict=True
    ):
        assert (verdict.rule_id, verdict.base_count, verdict.golden_count) == (
            name,
            len(in_base),
            len(in_golden),
        )
        assert verdict.accepted is any(entry.id == name for entry in two.registered_rules)
        assert bool(verdict.reason) is not verdict.accepted


def many(name: str, path: str, count: int, start: int = 1) -> tuple[Match, ...]:
    return tuple(Match(name, path, start + n, start + n) for n in range(count))


@pytest.mark.parametrize(
    ("wanted", "unwanted", "shown"),
    [(11, 1, True), (10, 1, False), (21, 2, True), (20, 2, False), (30, 0, False), (41, 4, True)],
)
def test_witness_is_shown_if_one_side_has_over_ten_times_more(
    wanted: int, unwanted: int, shown: bool
) -> None:
    there, gone = ScanResult(many("x", "new.py", wanted)), ScanResult(many("x", "old.py", unwanted, start=5))
    for direction, base, golden in ((Direction.ADDITIVE, gone, there), (Direction.REDUCTIVE, there, gone)):
        verdict = register_candidates(direction, [rule("x")], base, golden).candidates[0]
        assert len(verdict.witnesses) == (min(unwanted, 3) if shown else 0)
        assert verdict.accepted is (unwanted == 0)
        lines = [(witness.path, witness.start_line) for witness in verdict.witnesses]
        assert lines == [("old.py", 5), ("old.py", 6), ("old.py", 7)][: len(lines)]


def test_witness_lines_are_shown_for_base_not_target(make_tree: MakeTree) -> None:
    tree = make_tree({"old.py": "one\ntwo\n" + "long\n" * 50})
    there = ScanResult(many("x", "new.py", 30))
    gone = ScanResult((Match("x", "old.py", 1, 2), Match("x", "old.py", 1, 40)))
    additive = register_candidates(Direction.ADDITIVE, [rule("x")], gone, there).candidates
    shown = add_witness_text(Direction.ADDITIVE, additive, tree)[0]
    assert [witness.text.split("\n")[:2] for witness in shown.witnesses] == [["one", "two"]] * 2
    assert shown.witnesses[0].text == "one\ntwo"
    assert "old.py, lines 1 to 2\n    | one\n    | two" in render_candidate_result(shown)
    reductive = register_candidates(Direction.REDUCTIVE, [rule("x")], there, gone).candidates
    hidden = add_witness_text(Direction.REDUCTIVE, reductive, tree)[0]
    assert [witness.text for witness in hidden.witnesses] == ["", ""]
    assert "old.py, lines 1 to 2" in render_candidate_result(hidden)
    assert "one" not in render_candidate_result(hidden)


def test_witness_text_is_bounded_and_from_the_tree(make_tree: MakeTree, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n" * 3)
    tree = make_tree({"long.py": "x" * 5_000 + "\n" + "y\n" * 99, "bytes.py": b"\xff\xfe\n"})
    (tree / "link.py").symlink_to(tmp_path / "secret")
    there = ScanResult(
        many("a", "n.py", 30) + many("b", "n.py", 30) + many("c", "n.py", 30) + many("d", "n.py", 30)
    )
    gone = ScanResult(
        (
            Match("a", "long.py", 1, 99),
            Match("b", "link.py", 1, 2),
            Match("c", "bytes.py", 1, 1),
            Match("d", "no.py", 1, 1),
        )
    )
    verdicts = register_candidates(
        Direction.ADDITIVE, [rule(name) for name in "abcd"], gone, there
    ).candidates
    texts = [
        witness.text
        for verdict in add_witness_text(Direction.ADDITIVE, verdicts, tree)
        for witness in verdict.witnesses
    ]
    assert [len(text) < 1_300 for text in texts] == [True] * 4
    assert texts[0].endswith("\n…")
    assert texts[1:] == ["", "\ufffd\ufffd", ""]


def test_id_is_registered_once(make_tree: MakeTree) -> None:
    golden = ScanResult(many("x", "a.py", 3))
    first = register_candidates(Direction.ADDITIVE, [rule("x"), rule("x")], ScanResult(()), golden)
    assert [verdict.accepted for verdict in first.candidates] == [True, False]
    second = register_candidates(
        Direction.ADDITIVE, [rule("x")], ScanResult(()), golden, first.registered_rules
    )
    assert "registered already" in second.candidates[0].reason
    assert second.registered_rules == first.registered_rules


SECRET = "Syntax error at line a.py:1: `secret_of_the_target` was unexpected"


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (
            ScanProblem(ScanProblemKind.RULE, "Rule parse error: invalid language klingon", "x"),
            "invalid language klingon",
        ),
        (
            ScanProblem(ScanProblemKind.RULE, "Too many matches: see a.py", "x", "secret_of_the_target.py"),
            "too many matches in one file",
        ),
        (ScanProblem(ScanProblemKind.TIMEOUT, SECRET, "x", "secret_of_the_target.py"), "ran out of time"),
        (ScanProblem(ScanProblemKind.ENGINE, SECRET), "crashed"),
    ],
)
def test_rule_without_answer_is_rejected_without_details_of_the_target(
    problem: ScanProblem, message: str
) -> None:
    golden = ScanResult(many("x", "a.py", 3), (problem,))
    verdict = register_candidates(Direction.ADDITIVE, [rule("x")], ScanResult(()), golden).candidates[0]
    assert not verdict.accepted
    assert verdict.golden_count is None
    assert verdict.base_count == 0
    assert message in render_candidate_result(verdict)
    assert "secret" not in render_candidate_result(verdict)


def test_problem_of_one_rule_or_of_parsing_does_not_affect_other_rules() -> None:
    problems = (
        ScanProblem(ScanProblemKind.RULE, "m", "y"),
        ScanProblem(ScanProblemKind.PARSE, "m", "", "a.py"),
        ScanProblem(ScanProblemKind.SKIPPED, "m", path="b.py"),
    )
    assert (
        register_candidates(
            Direction.ADDITIVE, [rule("x")], ScanResult((), problems), ScanResult(many("x", "a.py", 1))
        )
        .candidates[0]
        .accepted
    )


def test_real_rules_are_registered_and_rejected_with_swapped_trees(
    engine: RuleEngine, make_tree: MakeTree
) -> None:
    base = make_tree({"a.py": "old(1)\nold(2)\nsame(1)\n"})
    golden = make_tree({"a.py": "new(1)\nnew(2)\nsame(1)\n"})
    rules = [
        rule("new", pattern="new(...)", metadata={"category": "api", "nr_legacy_patterns": 99}),
        rule("copy", pattern="new($X)"),
        rule("same", pattern="same(...)"),
        rule("nothing", pattern="other(...)"),
        rule("broken", pattern="new(("),
    ]
    found = scan(engine, rules, base), scan(engine, rules, golden)
    registration = register_candidates(Direction.ADDITIVE, rules, *found)
    assert [entry.id for entry in registration.registered_rules] == ["new"]
    results = [render_candidate_result(verdict) for verdict in registration.candidates]
    assert results[0] == "new: registered (0 matches in the base code, 2 matches in the refactored code)"
    assert "overlap those of the registered new by 1.000" in results[1]
    assert "must not match in the base code, where it has 1 match" in results[2]
    assert "matches nothing in the refactored code" in results[3]
    assert "Invalid pattern for Python" in results[4]
    written = dump_rules(entry.to_rule() for entry in registration.registered_rules)
    assert parse_rules(written, source="w")[0].body["metadata"] == {
        "category": "api", "nr_legacy_patterns": 0, "nr_refactored_patterns": 2,
    }  # fmt: skip
    assert not register_candidates(Direction.ADDITIVE, rules, found[1], found[0]).registered_rules
    assert [
        entry.id
        for entry in register_candidates(Direction.REDUCTIVE, rules, found[1], found[0]).registered_rules
    ] == ["new"]
