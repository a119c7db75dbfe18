"""Which rules name code that the description of a task does not."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.rules.names.guessed import guessed_names, names_in, required_names

PATTERN = {"id": "uses-loader", "message": "load with ConfigLoader", "pattern": "new_config.load($PATH, ...)"}


@pytest.mark.parametrize(
    ("description", "known", "guessed"),
    [
        ("Read the settings in a new way", (), ("load", "new_config")),
        ("Use `new_config` to load settings", (), ()),
        ("Load settings from NEW_CONFIG", (), ()),
        ("Use new_config", ("load",), ()),
        ("", (), ("load", "new_config")),
    ],
)
def test_a_name_is_guessed_unless_the_description_or_a_reductive_rule_has_it(
    description: str, known: tuple[str, ...], guessed: tuple[str, ...]
) -> None:
    assert guessed_names(PATTERN, description, known) == guessed


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({"pattern-regex": r"\bfoo_bar\s*\(\w+"}, {"foo_bar"}),
        ({"patterns": [{"pattern": "Old($X)"}, {"pattern-not": "Old(secret)"}]}, {"Old"}),
        (
            {"patterns": [{"metavariable-regex": {"metavariable": "$NAME", "regex": "^getThing$"}}]},
            {"getThing"},
        ),
        ({"pattern-either": [{"pattern": "one_way()"}, {"pattern": "two_ways()"}]}, {"one_way", "two_ways"}),
        ({"mode": "taint", "pattern-sources": [{"pattern": "source()"}]}, {"source"}),
        ({"pattern": "return $X", "paths": {"include": ["src/parser.py"]}}, set()),
        ({"pattern-either": "not a list", "patterns": None}, set()),
    ],
)
def test_required_names_are_those_of_patterns(body: dict[str, Any], names: set[str]) -> None:
    assert required_names(body) - {"not", "list"} == names


@given(st.text())
def test_a_description_with_the_whole_pattern_leaves_nothing_to_guess(text: str) -> None:
    body = {"pattern": text}
    assert guessed_names(body, text) == ()
    assert guessed_names(body, "", names_in([body])) == ()
