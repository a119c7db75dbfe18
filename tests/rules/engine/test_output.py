"""Parsing the engine's output, for errors that the real engine does not produce on demand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from codetaste.rules.engine.output import RULE_ALIAS, UnreadableOutput, parse_output

EMPTY = b'{"runs": [{"results": []}]}'
IDS = {RULE_ALIAS.format(0): "mine", RULE_ALIAS.format(1): "other"}


def problems(**error: Any) -> list[tuple[str, str, str, str]]:
    report = json.dumps({"errors": [error], "paths": {"scanned": ["a.py"]}}).encode()
    found = parse_output(EMPTY, report, IDS, {"a.py"}).problems
    return [(p.kind, p.rule_id, p.path, p.message) for p in found]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("Syntax error", "parse"),
        (["PartialParsing", []], "parse"),
        ("Timeout", "timeout"),
        ("Out of memory", "engine"),
        ("Internal matching error", "engine"),
        (None, "engine"),
        (7, "engine"),
    ],
)
def test_sarif_errors_are_classified_by_kind(name: object, kind: str) -> None:
    assert problems(type=name, rule_id=RULE_ALIAS.format(0), path="a.py", message="m")[0][:3] == (
        kind,
        "mine",
        "a.py",
    )


@pytest.mark.parametrize(("rules", "rule_id"), [(1, "mine"), (2, ""), (21, "")])
def test_too_many_matches_of_several_rules_concern_all_rules(rules: int, rule_id: str) -> None:
    """The engine drops the matches of all rules in the file, and names the rule with most of them."""
    message = f"{rules} rules result in too many matches, most offending rule has 10001: f(...)"
    found = problems(type="Too many matches", rule_id=RULE_ALIAS.format(0), path="a.py", message=message)
    assert found[0][:3] == ("rule", rule_id, "a.py")


def test_message_has_the_original_rule_id() -> None:
    found = problems(
        type="Fixpoint timeout", message=f"Fixpoint timeout [rule: {RULE_ALIAS.format(1)} file: a.py]"
    )
    assert found == [("timeout", "other", "", "Fixpoint timeout: Fixpoint timeout [rule: other file: a.py]")]
    assert problems(type="Fixpoint timeout", message="svalue propagation", path="a.py")[0][0] == "symbols"


def test_message_is_one_bounded_printable_line() -> None:
    problem = problems(type="Syntax error", message="x\n" * 5_000 + "\udcff", path="gone.py")[0]
    assert len(problem[3]) < 700
    assert "\n" not in problem[3]
    assert problems(type="Syntax error", message="\udcff")[0][3].isascii()
    assert problem[2] == "gone.py"


def test_paths_are_read_with_and_without_encoding() -> None:
    def found(uri: str, files: set[str]) -> str:
        region = {"startLine": 1}
        place = {"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}
        sarif = json.dumps({"runs": [{"results": [{"ruleId": RULE_ALIAS.format(0), "locations": [place]}]}]})
        return parse_output(sarif.encode(), b"{}", IDS, files).matches[0].path

    assert found("a%20b.py", {"a b.py"}) == "a b.py"
    assert found("a%20b.py", {"a%20b.py", "a b.py"}) == "a%20b.py"
    assert found("./%FF.py", {"\udcff.py"}) == "\udcff.py"


@pytest.mark.parametrize(
    ("sarif", "report"),
    [
        (b"", b""),
        (EMPTY, b'{"errors": ['),
        (EMPTY[:9], b"{}"),
        (b"[]", b"{}"),
        (b'{"runs": [{"results": [{}]}]}', b"{}"),
        (b"[" * 100_000, b"{}"),
    ],
)
def test_damaged_output_is_an_error(sarif: bytes, report: bytes) -> None:
    with pytest.raises(UnreadableOutput):
        parse_output(sarif, report, IDS, set())


def test_error_about_all_rules_is_an_error() -> None:
    report = json.dumps(
        {"errors": [{"type": "Invalid YAML", "message": "Invalid YAML at line x:5:\n Expected a list"}]}
    )
    with pytest.raises(UnreadableOutput, match="Expected a list") as caught:
        parse_output(EMPTY, report.encode(), IDS, set())
    assert caught.value.rules_refused


def test_time_limit_inside_the_parser_is_no_syntax_error() -> None:
    """Such an error would be cached, as if the file could never be parsed."""
    message = "Other syntax error at line a.py:1: Memprof_limits.Limit_reached: token set"
    found = problems(type="Other syntax error", message=message, path="a.py")
    assert [kind for kind, *_ in found] == ["timeout"]
