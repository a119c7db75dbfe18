"""Malformed and huge commands are read in bounded time without an exception."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.evaluation.activity.counts import Activity
from codetaste.evaluation.activity.transcripts import command_activity

PIECES = st.sampled_from(
    [
        *"'\"`$(){}[]|&;<>\\#\n ",
        "pytest",
        "sed -i",
        "<<E",
        "$((",
        "bash -c ",
        "find -exec ",
        "env ",
        "\x00",
        "é",
        "\udc80",
    ]
)
FLOODS = {
    "parentheses": "(" * 50_000,
    "braces": "${a" * 4_000,
    "finds": "find " + "-exec find " * 4_000,
    "evals": "eval " * 4_000 + "pytest",
    "shells": "bash -c '" * 4_000,
    "wrappers": "env " * 10_000 + "pytest",
    "options": "perl -" + "l" * 50_000,
    "functions": "node -e '" + "let a = " * 10_000 + "'",
    "blocks": "python - <<E\n" + "\n".join(f"{' ' * min(i, 99)}x.write(1)" for i in range(900)) + "\nE\n",
    "tasks": "make " + "test-" * 20_000,
}


@pytest.mark.parametrize("flood", FLOODS)
@pytest.mark.timeout(60)
def test_flood_is_read_in_bounded_time(flood: str) -> None:
    assert isinstance(command_activity(FLOODS[flood]), Activity)


def test_shell_text_over_size_limit_is_unread() -> None:
    assert command_activity("pytest " * 30_000) == Activity(commands=1, unparsed=1)


@given(st.lists(PIECES, max_size=40).map("".join))
@settings(max_examples=150)
def test_any_text_gives_an_activity(text: str) -> None:
    assert isinstance(command_activity(text), Activity)
