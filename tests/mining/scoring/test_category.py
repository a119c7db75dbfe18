"""The category of a refactoring, by words of its message."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.core.paths import resource_dir
from codetaste.mining.scoring.category import Category, category_of_message, parse_category


@pytest.mark.parametrize(
    ("message", "category"),
    [
        ("refactor: extract `@prisma/dmmf` and `@prisma/generator` packages", Category.STRUCTURAL),
        ("Remove mock dependency (#8774)\n\nReplace usage with unittest.mock", Category.DEPENDENCY),
        ("refactor: rename runtime apis to snake_case", Category.API),
        ("dev: simplify constructors", Category.BASIC),
        ("Read all settings from one configuration", Category.CONFIG),
        ("Introduce an abstract base for caches\n\nmove", Category.ABSTRACTION),
        ("Separate protocol layers of the architecture", Category.ARCHITECTURE),
        ("", Category.API),
        ("tidy", Category.API),
    ],
)
def test_most_frequent_words_decide(message: str, category: Category) -> None:
    assert category_of_message(message) is category


def test_long_list_does_not_outweigh_the_title() -> None:
    assert category_of_message("Split packages\n\n" + "* rename a field\n" * 50) is Category.STRUCTURAL


@given(st.text())
def test_every_message_has_a_category(message: str) -> None:
    assert category_of_message(message) in Category


def test_prompt_says_what_each_category_means() -> None:
    prompt = (resource_dir("prompts") / "mine_diff.md").read_text()
    for category in Category:
        assert f"\n- {category}: " in prompt
        assert parse_category(f" {category.upper()}\n") is category
