"""Reading rules from YAML: faults with their lines, and bounded effort for any text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import RuleError
from codetaste.rules.rule import parse_rules, read_candidates
from codetaste.rules.yaml import reader as yaml_reader

GOOD = """\
rules:
- id: first
  message: m
  severity: INFO
  languages: [python]
  pattern: foo(...)
- id: second
  message: m
  severity: INFO
  languages:
  - go
  pattern: bar
"""


def read_fault(text: str | bytes) -> RuleError:
    with pytest.raises(RuleError) as caught:
        parse_rules(text, source="rules.yml")
    return caught.value


def test_rules_are_in_order_with_their_first_lines() -> None:
    rules = parse_rules(GOOD, source="rules.yml")
    assert [(rule.id, rule.languages, rule.line) for rule in rules] == [
        ("first", ("python",), 2),
        ("second", ("go",), 7),
    ]
    assert parse_rules(b"\xef\xbb\xbf" + GOOD.encode(), source="rules.yml") == rules


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (GOOD.replace("pattern: bar", "pattern: 'bar"), 12, "quoted scalar"),
        (GOOD.replace("  languages:\n", "\tlanguages:\n"), 10, "cannot start any token"),
        (GOOD.replace("  pattern: bar", "  pattern: bar\n  id: again"), 13, "'id' appears twice"),
        (GOOD.encode().replace(b"bar", b"b\xe4r"), 12, "not UTF-8"),
        (GOOD.replace("bar", "b\0r"), 12, "not allowed"),
        (GOOD.replace("id: second", "id: first"), 7, "used twice; the first is at line 2"),
        (GOOD.replace("id: second", "id: a.b"), 7, "'a.b' must be 1 to 128 letters"),
        (GOOD.replace("id: second", "id: ''"), 7, "must be 1 to 128 letters"),
        (GOOD.replace("id: second", "id: [x]"), 7, "id must be text, not a list"),
        (GOOD.replace("id: second", "other: x"), 7, "id is missing"),
        (GOOD.replace("pattern: bar", "pattern: 12"), 7, "pattern must be text, not a number"),
        (GOOD.replace("languages:\n  - go", "languages: go"), 7, "languages must be a list"),
        (GOOD.replace("- go", "- 1"), 7, "every language must be text"),
        (GOOD.replace("pattern: bar", "metadata: x"), 7, "metadata must be a mapping"),
        (GOOD.replace("pattern: bar", "<<: {a: 1}"), 12, "merge keys"),
        (GOOD.replace("pattern: bar", "pattern: !!python/name:os.system x"), 12, "not plain data"),
        (GOOD.replace("pattern: bar", "1: bar"), 12, "a key must be text"),
        (GOOD.replace("- id: second", "- just text\n- id: second"), 7, "a rule must be a mapping"),
        (GOOD + "---\nrules: []\n", 13, "another document"),
        ("- id: x\n", 1, "with the key 'rules'"),
        ("", 1, "with the key 'rules'"),
        ("other: []\n", 1, "'rules' is missing"),
        ("rules: text\n", 1, "'rules' must be a list"),
        ("rules: []\n", 0, "is empty"),
        ("rules:\n- *unknown\n", 2, "undefined alias"),
        pytest.param("rules:\n " + "[" * 200_000, 2, "nested too deeply", id="brackets"),
        pytest.param("rules:\n" + "- " * 20_000, 0, "nested too deeply", id="dashes"),
        ("rules:\n- id: " + "[" * 70 + "]" * 70, 2, "nested deeper than 64"),
        ("x" * (yaml_reader.MAX_BYTES + 1), 0, "at most 2,097,152 are read"),
    ],
)
def test_yaml_fault_names_line(text: str | bytes, line: int, message: str) -> None:
    error = read_fault(text)
    assert message in str(error)
    assert error.line == line
    assert f"rules.yml:{line}: " in str(error)


def test_yaml_faults_of_a_file_are_all_reported() -> None:
    error = read_fault(GOOD.replace("id: first", "id: a b").replace("pattern: bar", "pattern: [x]"))
    assert [line.split(":")[1] for line in str(error).splitlines()] == ["2", "7"]


def test_aliases_are_expanded_up_to_a_limit() -> None:
    rules = parse_rules(GOOD.replace("pattern: foo(...)", "options: &o {a: 1}\n  paths: *o"), source="x")
    assert rules[0].body["paths"] == {"a": 1}
    bomb = "rules:\n- id: x\n  a0: &a0 [l, l]\n"
    bomb += "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
    start = time.process_time()
    assert "too large to expand" in str(read_fault(bomb))
    assert time.process_time() - start < 10
    assert "deeper than" in str(read_fault("rules:\n- id: x\n  a: &a [*a]\n"))


def test_ten_megabytes_are_refused_without_parsing() -> None:
    start = time.process_time()
    assert "bytes; at most" in str(read_fault(b"rules:\n" + b"- {id: x}\n" * 1_000_000))
    assert time.process_time() - start < 5


def test_scalars_that_only_yaml_1_1_converts_stay_text() -> None:
    values = "on yes no off y 1:20 0b1 1_000 2001-01-01 .inf = 1e3x"
    text = GOOD + "  metadata: [" + ", ".join(values.split()) + "]\n"
    text = (
        text.replace("metadata: [", "metadata: {v: [").replace("]\n", "]}\n").replace("[python]}", "[python]")
    )
    body = parse_rules(text, source="x")[1].body
    assert body["metadata"]["v"] == values.split()
    numbers = parse_rules(
        GOOD + "  metadata: {v: [1, -2, 012, 0x1F, 0o17, 1e3, .5, ~, true, 'null']}", source="x"
    )
    assert numbers[1].body["metadata"]["v"] == [1, -2, 12, 31, 15, 1000.0, 0.5, None, True, "null"]


def test_candidates_are_read_in_three_forms() -> None:
    bare = GOOD.removeprefix("rules:\n")
    single = "id: one\nmessage: m\nseverity: INFO\nlanguages: [go]\npattern: x\n"
    assert [rule.id for rule in read_candidates(GOOD).rules] == ["first", "second"]
    assert [rule.id for rule in read_candidates(bare).rules] == ["first", "second"]
    assert [rule.id for rule in read_candidates(single).rules] == ["one"]
    for nothing in ("", "# nothing\n", "[]", "rules:", "just words", "a: b"):
        found = read_candidates(nothing)
        assert not found.rules
        assert len(found.errors) == 1


def test_bad_candidate_does_not_affect_others() -> None:
    third = "- id: third\n  message: m\n  severity: INFO\n  languages: [go]\n  pattern: x\n"
    unquoted = read_candidates(GOOD.replace("pattern: bar", "pattern: 'bar") + third)
    assert [rule.id for rule in unquoted.rules] == ["first", "third"]
    assert [error.line for error in unquoted.errors] == [12]
    missing = read_candidates(GOOD.replace("  severity: INFO\n  languages: [python]", "  x: 1") + third)
    assert [rule.id for rule in missing.rules] == ["second", "third"]
    assert [(error.rule_id, error.line) for error in missing.errors] == [("first", 2)]
    tab = read_candidates("rules:\n  - id: a\n\tb: c\n" + "  " + third.replace("\n", "\n  "))
    assert [(rule.id, rule.line) for rule in tab.rules] == [("third", 4)]


@given(st.text(max_size=300))
def test_reader_accepts_any_text(text: str) -> None:
    found = read_candidates(text)
    assert found.errors or found.rules


@given(st.binary(max_size=60), st.integers(0, len(GOOD)), st.integers(0, 20))
def test_reader_accepts_any_damaged_file(junk: bytes, start: int, length: int) -> None:
    data = GOOD.encode()
    damaged = data[:start] + junk + data[start + length :]
    found = read_candidates(damaged)
    assert found.errors or found.rules
    try:
        parse_rules(damaged, source="x")
    except RuleError as error:
        assert str(error)  # noqa: PT017  (an undamaged file raises nothing)
