"""A judge's choice is read in every form that models use; other texts are no choice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.flows.infer.judge import selected_plan

FORMS = [
    "SELECTED: {}",
    "SELECTED: [{}]",
    "**SELECTED:** {}",
    "**SELECTED: {}**",
    "SELECTED: **{}**",
    "SELECTED: **[{}]**",
    "SELECTED: Plan {}",
    "SELECTED: PLAN {}",
    "SELECTED: [Plan {}]",
    "SELECTED: plan number {}",
    "SELECTED: Plan #{}",
    "SELECTED: #{}",
    "SELECTED: `{}`",
    "SELECTED: ({})",
    "SELECTED: <{}>",
    "SELECTED: {}.",
    "SELECTED: 0{}",
    "SELECTED : {}",
    "SELECTED:{}",
    "SELECTED:\n{}",
    "SELECTED:\n\n**{}**",
    "SELECTED PLAN: {}",
    "SELECTED: refactoring_plan{}",
    "SELECTED: refactoring_plan{}.md",
    "SELECTED: {} (refactoring_plan{}.md)",
    "SELECTED: {} - it overlaps most",
    "SELECTED: {}, for 90% of it is there",
    "Selected: {}",
    "**Selected: Plan {}**",
    "### SELECTED: {}",
    "> SELECTED: {}",
    "- **SELECTED**: {}",
    "So, SELECTED: {}",
    "$\\boxed{{SELECTED: {}}}$",
]
NO_CHOICE = [
    "",
    "3",
    "Plan 3",
    "SELECTED",
    "SELECTED:",
    "SELECTED: [plan number]",
    "SELECTED: three",
    "SELECTED: none",
    "SELECTED: 5",
    "SELECTED: 33",
    "SELECTED: 3000000000000000000000000000",
    "SELECTED: -1",
    "SELECTED: 3.5",
    "SELECTED: 3rd",
    "SELECTED: 3%",
    "SELECTED: 3:1",
    "SELECTED: 3 or 4",
    "SELECTED: 3 and plan 4",
    "SELECTED: [3] and [4]",
    "SELECTED: plans 3 and 4",
    "SELECTED: 3, 4",
    "SELECTED: 3/4",
    "SELECTED: 3-4",
    "SELECTED: **3** or **4**",
    "SELECTED: 1\nSELECTED: 2",
    "SELECTED: 3\n…\nOn second thought:\nSELECTED: 4",
    "SELECTED: 3\nSELECTED: 7",
    "UNSELECTED: 3",
    "DE-SELECTED_: x 3",
    "Plans not selected: 3",
    "the plan I selected: 3",
    "SELECTED by me is plan 3",
    "SELECTED: see above, 3",
]
prose = st.text(max_size=200).filter(lambda text: "SELECTED" not in text.upper())


@pytest.mark.parametrize("form", FORMS)
def test_every_form_of_choice_is_read(form: str) -> None:
    for number in range(5):
        answer = f"Plan 0 is vague, plans 1 and 4 miss half of it.\n\n{form.replace('{}', str(number))}\n"
        assert selected_plan(answer.replace("{{", "{").replace("}}", "}"), 5) == number


@pytest.mark.parametrize("answer", NO_CHOICE)
def test_ambiguous_or_invalid_choice_is_rejected(answer: str) -> None:
    assert selected_plan(answer, 5) is None


def test_quoted_form_is_no_choice() -> None:
    assert selected_plan("I am to say SELECTED: [plan number].\nSELECTED: 4", 5) == 4
    assert selected_plan("SELECTED: 4\nIn short:\n**SELECTED:** [4]", 5) == 4


@given(prose, st.sampled_from(FORMS), st.integers(0, 4), prose)
def test_prose_before_and_after_does_not_change_a_choice(
    before: str, form: str, number: int, after: str
) -> None:
    stated = form.replace("{{", "{").replace("}}", "}").replace("{}", str(number))
    assert selected_plan(f"{before}\n{stated}\n\n{after}", 5) == number


@given(
    prose, st.sampled_from(FORMS), st.sampled_from(FORMS), st.sets(st.integers(0, 4), min_size=2, max_size=2)
)
def test_two_different_choices_are_none(before: str, first: str, second: str, numbers: set[int]) -> None:
    one, other = numbers
    answer = f"{before}\n{first.replace('{}', str(one))}\n\n{second.replace('{}', str(other))}\n"
    assert selected_plan(answer, 5) is None


@given(st.text(alphabet="SELECTEDselected:*[]() plan0123456789.,-\n", max_size=300), st.integers(1, 7))
def test_any_text_gives_existing_plan_or_none(text: str, plans: int) -> None:
    assert selected_plan(text, plans) in {None, *range(plans)}


def test_long_answer_with_incomplete_choices_gives_none() -> None:
    for piece in ("SELECTED:" + " *" * 50, "SELECTED", "Selected *", "> " * 40, "SELECTED:\n\n\n"):
        assert selected_plan(piece * 4000, 5) is None
