"""Records of rejected candidates: what is in them, how large they get, and older forms."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from codetaste.agent.rejected_rule import (
    MAX_YAML_CHARS,
    RejectedRule,
    ScannedTree,
    rejected_candidates,
    unreadable_candidate,
)
from codetaste.errors import RuleError
from codetaste.rules.registration import Direction, register_candidates
from codetaste.rules.rule import Rule, make_rule, parse_rules
from codetaste.rules.scan.model import Match, ScanResult

VALUES = st.sampled_from(
    [None, True, -1, 0, 7, 10**400, 2.5, float("inf"), "", "text", "\ud800", [], {}, [{}]]
)
KEYS = [
    *("id", "rejection", "format", "reason", "error", "yaml", "base_count", "golden_count", "matches"),
    *("side", "path", "start_line", "end_line", "text"),
]


def rule(name: str, pattern: str = "f(...)") -> Rule:
    return make_rule(
        {"id": name, "message": "m", "severity": "INFO", "languages": ["python"], "pattern": pattern}
    )


def records(
    tmp_path: Path, direction: Direction, base: ScanResult, golden: ScanResult, *rules: Rule
) -> list[RejectedRule]:
    trees = []
    for side, scan in (("base", base), ("refactored", golden)):
        folder = tmp_path / side
        folder.mkdir()
        (folder / "a.py").write_text("".join(f"{side} {number}\n" for number in range(1, 60)))
        trees.append(ScannedTree(side, folder, scan))
    results = register_candidates(direction, rules, base, golden).candidates
    return list(rejected_candidates(direction, results, rules, *trees))


def test_matches_in_the_wrong_tree_are_recorded_with_their_code(tmp_path: Path) -> None:
    base = ScanResult(tuple(Match("bad", "a.py", line, line + line % 2) for line in (9, 8, 4, 2)))
    golden = ScanResult((Match("bad", "a.py", 1, 1), Match("good", "a.py", 3, 3)))
    [bad] = records(tmp_path, Direction.ADDITIVE, base, golden, rule("bad"), rule("good"))
    assert (bad.id, bad.rejection, bad.base_count, bad.golden_count) == ("bad", "matches_wrong_tree", 4, 1)
    assert "must not match in the base code" in bad.reason
    assert [(each.side, each.start_line, each.text) for each in bad.matches] == [
        ("base", 2, "base 2"),
        ("base", 4, "base 4"),
        ("base", 8, "base 8"),
    ]
    assert parse_rules(bad.yaml, source="r") == (rule("bad"),)


def test_matches_of_the_refactored_code_are_recorded_for_reductive_rules(tmp_path: Path) -> None:
    golden = ScanResult((Match("left", "a.py", 5, 6),))
    base = ScanResult((Match("left", "a.py", 7, 7),))
    [left] = records(tmp_path, Direction.REDUCTIVE, base, golden, rule("left"))
    [match] = left.matches
    assert (match.side, match.path, match.start_line, match.end_line) == ("refactored", "a.py", 5, 6)
    assert match.text == "refactored 5\nrefactored 6"


def test_a_rule_that_overlaps_shows_where_it_matches(tmp_path: Path) -> None:
    golden = ScanResult((Match("one", "a.py", 3, 3), Match("two", "a.py", 3, 3)))
    [two] = records(tmp_path, Direction.ADDITIVE, ScanResult(()), golden, rule("one"), rule("two"))
    assert two.rejection == "overlaps"
    assert "registered one by 1.000" in two.reason
    assert [each.text for each in two.matches] == ["refactored 3"]


def test_a_record_is_bounded_and_comes_back_from_json(tmp_path: Path) -> None:
    base = ScanResult((Match("huge", "a.py", 1, 50),))
    [huge] = records(tmp_path, Direction.ADDITIVE, base, ScanResult(()), rule("huge", "x" * 100_000))
    text = json.dumps(huge.to_json())
    assert len(huge.yaml) < MAX_YAML_CHARS + 50
    assert len(text) < 12_000
    assert RejectedRule.from_json(json.loads(text)) == huge


def test_an_unreadable_candidate_has_the_text_around_its_error() -> None:
    text = "\n".join(f"line {number}" for number in range(1, 100))
    made = unreadable_candidate(RuleError("languages is missing", line=50, rule_id="x"), text)
    assert (made.id, made.rejection, made.error) == ("x", "unreadable", "languages is missing")
    assert "line 50" in made.yaml.split("\n")
    assert "line 5" not in made.yaml.split("\n")
    assert RejectedRule.from_json(json.loads(json.dumps(made.to_json()))) == made


def test_older_records_have_id_and_kind() -> None:
    older = {"id": "x", "rejection": "overlaps"}
    made = RejectedRule.from_json(older)
    assert made == RejectedRule("x", "overlaps")
    assert not made.detailed
    assert made.to_json() == older


@given(
    st.dictionaries(st.sampled_from(KEYS), VALUES),
    st.lists(st.dictionaries(st.sampled_from(KEYS), VALUES), max_size=2),
)
def test_any_record_is_read(data: dict[str, Any], matches: list[Any]) -> None:
    made = RejectedRule.from_json({"matches": matches, **data})
    assert RejectedRule.from_json(json.loads(json.dumps(made.to_json()))) == made
