"""Writing rules as YAML: rules survive a round trip, in the published layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.rules.rule import make_rule, parse_rules
from codetaste.rules.yaml_writer import dump_rules

DIFFICULT = [
    "on", "off", "yes", "No", "y", "null", "~", "true", "1e3", "012", "0o7", "0x1", "1_000", "1:20",
    ".5", "-", "--- a", "!tag", "&a", "*a", "a: b", "a #b", "a:", "#", "%x", "@x", "`x`", "|", ">", "'",
    '"', "\\", "a\\n", "\n", " a", "a ", "a\n", "a\nb", "a\nb\n", "a\nb\n\n", "\na", " a\nb", "a\n b\n",
    "a\n\nb", "a\n  \nb", "a\tb", "\t", "a\r\nb", "a\u2028b", "a\u2029", "a\x85b", "\ufeffa", "é", "😀",
    "\x01", "\x7f", "a\xa0b", "{a}", "[a]", "? a", "- a", "=", "<<", "2001-01-01", "...", "a\u200bb",
    "a, b", "x" * 300,

]  # fmt: skip
SCALARS = st.one_of(
    st.sampled_from(DIFFICULT),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters=["\ufffe", "\uffff"]),
        max_size=40,
    ).filter(lambda text: all(char.isprintable() or char in "\n\t\x85\u2028" for char in text)),
    st.text("ab :#-'\"\\\n\t{}[]$.*", max_size=30),
    st.integers(-(10**20), 10**20),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.booleans(),
    st.none(),
)
KEYS = st.one_of(
    st.sampled_from([scalar for scalar in DIFFICULT if len(scalar) < 100]), st.text("ab-_", min_size=1)
)
VALUES = st.recursive(
    SCALARS, lambda v: st.lists(v, max_size=3) | st.dictionaries(KEYS, v, max_size=3), max_leaves=12
)


def body(**keys: Any) -> dict[str, Any]:
    return {"id": "x", "message": "m", "severity": "INFO", "languages": ["go"], **keys}


@given(VALUES, st.sampled_from(DIFFICULT))
def test_written_rules_are_read_unchanged(value: Any, message: str) -> None:
    rules = (
        make_rule(body(metadata={"v": value})),
        make_rule({**body(patterns=value), "id": "y", "message": message}),
    )
    assert parse_rules(dump_rules(rules), source="x") == rules


@pytest.mark.parametrize("scalar", [scalar[:100] for scalar in DIFFICULT])
def test_difficult_scalars_survive_as_pattern_message_and_key(scalar: str) -> None:
    rules = (
        make_rule(body(pattern=scalar, metadata={scalar: [scalar, {scalar: scalar}]}) | {"message": scalar}),
    )
    assert parse_rules(dump_rules(rules), source="x") == rules


def test_keys_are_in_the_published_order() -> None:
    keys = [
        "options",
        "paths",
        "metadata",
        "pattern-sources",
        "mode",
        "languages",
        "severity",
        "message",
        "id",
    ]
    given_ = {key: body().get(key, {}) for key in keys} | {"mode": "taint"}
    lines = dump_rules([make_rule(given_)]).splitlines()
    assert [line[2:].split(":")[0] for line in lines[1:] if line[2:3].isalpha() and ":" in line] == [
        "id", "message", "severity", "languages", "mode", "pattern-sources", "metadata", "paths", "options",
    ]  # fmt: skip
    assert lines[:2] == ["rules:", "- id: x"]


def test_layout_is_the_published_one() -> None:
    made = make_rule(
        body(
            patterns=[{"pattern": "f()\ng()"}, {"pattern-not": "x: y"}],
            paths={"exclude": ["**/*.go"]},
            options={},
        )
    )
    assert dump_rules([made]) == (
        "rules:\n- id: x\n  message: m\n  severity: INFO\n  languages:\n  - go\n"
        "  patterns:\n  - pattern: |-\n      f()\n      g()\n  - pattern-not: 'x: y'\n"
        "  paths:\n    exclude:\n    - '**/*.go'\n  options: {}\n"
    )


def test_published_rules_survive_a_round_trip(published_data: Path) -> None:
    files = sorted((published_data / "assets" / "rules").glob("**/*.yml"))
    assert files
    for file in files:
        rules = parse_rules(file.read_bytes(), source=file.name)
        assert parse_rules(dump_rules(rules), source="again") == rules
