"""Replies are read strictly: what is not of the required form is refused, with the reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.flows.describe.reply import SECTIONS, read_description, read_sentence

GOOD = "# Title\n\nTidy\n\n# Summary\n\nAll.\n\n# Why\n\n- Order\n\n# Changes\n\n## Shop\n\n- `a` to `b`\n"


def render(sections: list[tuple[str, str]]) -> str:
    return "\n\n".join(f"# {name}\n\n{text}" for name, text in sections) + "\n"


@pytest.mark.parametrize(
    "reply",
    [
        GOOD,
        f"```markdown\n{GOOD}```",
        GOOD.replace("# Title\n", "# Title:\n"),
        GOOD.replace("# Title\n", "# Title\n-----\n"),
        GOOD.replace("# Why\n", "Why\n---\n"),
        GOOD.replace("- Order", "- Order\n\n```sh\n# Title\n```"),
    ],
)
def test_accepted_forms_give_the_published_one(reply: str) -> None:
    answer = read_description(reply)
    assert answer.problems == ()
    assert answer.text.startswith("# Title\n\nTidy\n\n# Summary\n\nAll.\n\n# Why\n\n- Order\n")


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        ("", "the reply is empty"),
        ("Here you are.", "the section Title is missing"),
        (f"Here you are.\n\n{GOOD}", "there is text before the first section"),
        (GOOD + GOOD, "the section Title is there 2 times"),
        (GOOD.replace("# Why\n\n- Order\n\n", ""), "the section Why is missing"),
        (GOOD.replace("- Order\n", ""), "the section Why is empty"),
        (GOOD.replace("Tidy", "Tidy\nup"), "the title has more than one line"),
        (GOOD.replace("Tidy", "Tidy" * 50), "the title has 200 characters, at most 150 are allowed"),
        (GOOD.replace("All.", "All." * 4000), "at most 12,000 are allowed"),
        (GOOD.replace("## Shop", "# Shop"), '"Shop" is no section'),
        (
            render([("Title", "a"), ("Why", "b"), ("Summary", "c"), ("Changes", "d")]),
            "the sections are not in the order Title, Summary, Why, Changes",
        ),
    ],
)
def test_description_of_another_form_is_refused(reply: str, problem: str) -> None:
    answer = read_description(reply)
    assert answer.text == ""
    assert any(problem in each for each in answer.problems), answer.problems


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ("Tidy up the shop", "Tidy up the shop\n"),
        ("Tidy up the shop.\n", "Tidy up the shop.\n"),
        ('"Tidy up the shop"', "Tidy up the shop\n"),
        ("```\nTidy up the shop\n```", "Tidy up the shop\n"),
    ],
)
def test_sentence_is_taken(reply: str, text: str) -> None:
    assert read_sentence(reply, 68).text == text


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (" \n", "the reply is empty"),
        ("Tidy up the shop\nOr the prices", "it has 2 lines"),
        ("Tidy up the shop. Then the prices.", "more than one sentence"),
        ("Tidy " * 14 + "up", "it has 72 characters, at most 68 are allowed"),
        ("Task: tidy up the shop", 'it begins with "Task: tidy up the shop"'),
        ("- Tidy up the shop", "the sentence alone is wanted"),
        ("Refactor", "it is no sentence"),
    ],
)
def test_sentence_of_another_form_is_refused(reply: str, problem: str) -> None:
    answer = read_sentence(reply, 68)
    assert answer.text == ""
    assert any(problem in each for each in answer.problems), answer.problems


BODY = st.text(
    st.characters(codec="utf-8", exclude_characters="#=-`~\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"),
    min_size=1,
    max_size=60,
)


@given(
    bodies=st.tuples(*[BODY.map(str.strip).filter(bool)] * 4),
    dropped=st.sampled_from((None, *SECTIONS)),
    twice=st.sampled_from((None, *SECTIONS)),
)
def test_exactly_the_four_sections_are_accepted(
    bodies: tuple[str, ...], dropped: str | None, twice: str | None
) -> None:
    title = " ".join(bodies[0].split())
    sections = [*zip(SECTIONS, (title, *bodies[1:]), strict=True)]
    sections = [each for each in sections if each[0] != dropped]
    sections += [each for each in sections if each[0] == twice]
    answer = read_description(render(sections))
    if dropped is None and twice is None:
        assert answer.text == render(sections)
        assert read_description(answer.text) == answer
    else:
        assert bool(answer.text) == (dropped is None and twice is None)
        assert any((dropped or twice or "") in problem for problem in answer.problems)


@given(
    st.text(max_size=300)
    | st.lists(st.sampled_from(["# Title", "---", "```", "x", "Why", ""])).map("\n".join)
)
def test_any_reply_is_read_or_refused_with_a_reason(reply: str) -> None:
    for answer in (read_description(reply), read_sentence(reply, 68)):
        assert bool(answer.text) != bool(answer.problems)
    sentence = read_sentence(reply, 68).text
    assert len(sentence.strip()) <= 68
    assert "\n" not in sentence[:-1]
