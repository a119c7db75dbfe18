"""Replies with scores, good and bad."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.scoring.category import Category
from codetaste.mining.scoring.reply import (
    MAX_REPLY_CHARS,
    UnusableReply,
    read_diff_reply,
    read_message_reply,
)
from codetaste.mining.scoring.scores import DiffScores, MessageScores
from support.mining.scoring_replies import DIFF, MESSAGE, answer

BILLION_LAUGHS = '<!DOCTYPE a [<!ENTITY b "ha"><!ENTITY c "&b;&b;&b;&b;">]>\n'


def test_answer_of_figure_9_is_read() -> None:
    read = read_message_reply(answer(MESSAGE, "A large-scale refactor of the VM's environment."))
    assert read.scores == MessageScores(0.88, 0.82, 0.72, 0.12, 0.08, 0.12)
    assert read.reasoning == "A large-scale refactor of the VM's environment."
    assert read.clamped == ()


def test_answer_of_figure_10_is_read_although_its_reasoning_is_not_well_formed() -> None:
    reasoning = (
        "All ~50+ handlers no longer have the `&mut Registers` parameter; Vec<T> stays; a < b && c &lt; d."
    )
    read = read_diff_reply(answer(DIFF, reasoning, category="api"))
    assert read.scores == DiffScores(0.92, 0.05, 0.25, 0.75, 0.08, 0.85, 0.12)
    assert read.reasoning.endswith("Vec<T> stays; a < b && c < d.")
    assert read.category is Category.API


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("```xml\n", "\n```"),
        ("Here it is:\n\n", "\n\nI hope that this helps."),
        ('<?xml version="1.0"?>\n', ""),
        (BILLION_LAUGHS, ""),
    ],
)
def test_what_is_around_the_answer_does_not_matter(before: str, after: str) -> None:
    assert read_message_reply(before + answer(MESSAGE) + after) == read_message_reply(answer(MESSAGE))


def test_fields_may_be_in_any_order_and_on_one_line() -> None:
    turned = dict(reversed(DIFF.items()))
    assert read_diff_reply(answer(turned).replace("\n", "")) == read_diff_reply(answer(DIFF))


@pytest.mark.parametrize(
    ("text", "value", "notes"),
    [
        ("0.88", 0.88, ()),
        (" 0.5\n", 0.5, ()),
        ("1", 1.0, ()),
        (".5", 0.5, ()),
        ("7", 1.0, ("uncertainty: 7 taken as 1",)),
        ("-0.2", 0.0, ("uncertainty: -0.2 taken as 0",)),
        ("1.0001", 1.0, ("uncertainty: 1.0001 taken as 1",)),
    ],
)
def test_numbers_are_clamped_with_a_note(text: str, value: float, notes: tuple[str, ...]) -> None:
    read = read_message_reply(answer(MESSAGE, uncertainty=text))
    assert read.scores.uncertainty == value
    assert read.clamped == notes


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"uncertainty": "high"}, "uncertainty is 'high', not a number"),
        ({"uncertainty": "88%"}, "uncertainty is '88%', not a number"),
        ({"uncertainty": "0,88"}, "not a number"),
        ({"uncertainty": "nan"}, "not a number"),
        ({"uncertainty": "inf"}, "not a number"),
        ({"uncertainty": "1e3"}, "not a number"),
        ({"uncertainty": "0.5 of 1"}, "not a number"),
        ({"uncertainty": "\u0660.\u0665"}, "not a number"),
        ({"uncertainty": "&b;"}, "not a number"),
        ({"uncertainty": "<b>0.5</b>"}, "not a number"),
        ({"uncertainty": "9" * 99}, "not a number"),
        ({"uncertainty": ""}, "without a value: uncertainty"),
        ({"uncertainty": None}, "without a value: uncertainty"),
        ({"uncertainty": None, "reasoning": None}, "without a value: uncertainty, reasoning"),
        ({"reasoning": "  "}, "without a value: reasoning"),
        ({"confidence": "0.5"}, "unknown field confidence"),
        ({"reasoning": "a</reasoning><uncertainty>0.1</uncertainty><reasoning>b"}, "is there twice"),
        ({"reasoning": "a</reasoning> and b"}, "no field where it says 'and b</reasoning>'"),
    ],
)
def test_unusable_fields_are_named(changed: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnusableReply) as refused:
        read_message_reply(answer(MESSAGE, **changed))
    assert problem in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "no <classification>"),
        ("I would say 0.8 in all respects.", "no <classification>"),
        (answer(MESSAGE) + answer(MESSAGE), "2 answers in place of one"),
        (answer(MESSAGE) + "\nor rather\n" + answer(MESSAGE, uncertainty="0.9"), "2 answers"),
        (answer(MESSAGE, "see <classification> above"), "2 answers"),
        (answer(MESSAGE).removesuffix("</classification>"), "<classification> does not end"),
        ("</classification><classification>", "<classification> does not end"),
        ("<classification></classification>", "without a value: large_scale_refactor_score"),
        (answer(DIFF), "unknown field refactor_likelihood"),
        (answer(MESSAGE).replace("<uncertainty>", '<uncertainty unit="x">'), "no field where it says"),
        (answer(MESSAGE).replace("<uncertainty>", "<!-- a --><uncertainty>"), "no field where it says"),
        ("<classification>" + "<uncertainty>" * 4000 + "</classification>", "no field where it says"),
        (answer(MESSAGE, "x" * MAX_REPLY_CHARS), "a reply of 6"),
    ],
)
def test_replies_without_one_answer_are_refused(text: str, problem: str) -> None:
    with pytest.raises(UnusableReply) as refused:
        read_message_reply(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "category"),
    [
        ("structural", Category.STRUCTURAL),
        (" API\n", Category.API),
        ("api, structural", None),
        ("rename", None),
        ("", None),
        (None, None),
    ],
)
def test_category_is_one_of_the_seven_or_none(text: str | None, category: Category | None) -> None:
    assert read_diff_reply(answer(DIFF, category=text)).category is category


PIECES = st.sampled_from(
    [
        "<classification>",
        "</classification>",
        "<uncertainty>",
        "</uncertainty>",
        "<reasoning>",
        "0.5",
        "x",
        "&",
        "\n",
    ]
)


@given(st.lists(PIECES, max_size=30).map("".join) | st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for read in (read_message_reply, read_diff_reply):
        with suppress(UnusableReply):
            assert read(text).reasoning
