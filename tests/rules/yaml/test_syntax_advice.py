"""YAML that models get wrong: the rule is named, and so is what to do; the other rules are read."""

from __future__ import annotations

import pytest

from codetaste.rules.rule import read_candidates

RULES = """rules:
  - id: first
    message: m
    severity: INFO
    languages: [python]
    {}
  - id: second
    message: m
    severity: INFO
    languages: [python]
    pattern: x
"""


@pytest.mark.parametrize(
    ("line", "cure"),
    [
        ("pattern: f(a: int)", "text with a colon and a space is a mapping; put it into a block"),
        ("pattern: def f(...): ...", "text with a colon and a space is a mapping"),
        ("pattern: *args", "such a beginning has a meaning; put it into a block"),
        ("pattern: @decorator", "such a beginning has a meaning"),
        ("pattern: - x", "such a beginning has a meaning"),
        ("pattern: ? x", "such a beginning has a meaning"),
        ("pattern: !x", "text that begins with ! is a tag"),
        ("\tpattern: x", "indent with spaces, not with tabs"),
        ('pattern-regex: "a\\d"', "use single quotes or none"),
        ("pattern: 'it's'", "text goes on behind a quote or bracket"),
        ("pattern: [a](b)", "text goes on behind a quote or bracket"),
        ("patterns:\n      - pattern: a\n     - pattern: b", "a line is not indented as those above it"),
        ("pattern: {", "a bracket or brace begins a list or mapping"),
        ("pattern: ]", "a bracket or brace begins a list or mapping"),
        ("pattern: | x", "begin the text on the line below the `|`"),
        ('pattern: "open', "close the quote"),
        ("pattern: |\n  def f(", "indent all lines of a block deeper than its key"),
    ],
)
def test_broken_rule_is_named_with_a_cure(line: str, cure: str) -> None:
    found = read_candidates(RULES.format(line))
    assert [rule.id for rule in found.rules] == ["second"]
    (error,) = found.errors
    assert error.rule_id == "first"
    assert error.line
    assert cure in str(error)
