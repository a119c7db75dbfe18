"""Prompts of the six types show what an instance knows, and nothing of what the developers did."""

from __future__ import annotations

import re

import pytest

from codetaste.llm.prompts import Prompts
from codetaste.swe_refactor.answers.answer_format import PARTS
from codetaste.swe_refactor.answers.problem import AnswerProblem, AnswerProblemKind
from codetaste.swe_refactor.answers.prompt import PromptExample, render_feedback, render_prompt
from support.swe_refactor.shop import CART, FILES, KINDS, TILL, code, instance

JAVA_FILES = tuple(FILES)


def prompt(kind: str, examples: tuple[PromptExample, ...] = (), **changes: object) -> str:
    (message,) = render_prompt(instance(kind, **changes), Prompts(), examples, JAVA_FILES)
    assert message.role == "user"
    return message.text


@pytest.mark.parametrize("kind", KINDS)
def test_prompt_has_the_target_its_file_the_type_and_the_format(kind: str) -> None:
    text, subject = prompt(kind), instance(kind)
    for shown in (subject.source_code_before_refactoring, subject.source_code_before_for_whole.strip(), kind):
        assert shown in text
    parts = re.findall(r"(?m)^#####\n(\w+)$", text)
    assert parts == [str(name) for name in PARTS[kind]]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if "Move" in kind])
def test_prompt_of_a_move_lists_the_files(kind: str) -> None:
    assert "\n".join(sorted(FILES)) in prompt(kind)
    assert "(only src/" in render_prompt(instance(kind), Prompts())[0].text


def test_prompt_of_an_inlining_names_the_method_that_takes_the_code_in() -> None:
    assert (
        f"Inline Method on the method size of the class shop.Cart, into the method count in {CART}"
        in prompt("Inline Method")
    )
    assert f"into the method price in {TILL}" in prompt("Move And Inline Method")


def test_developers_names_are_not_in_the_prompt() -> None:
    hidden = instance("Extract Method").updated(
        {
            "description": "secretName",
            "sourceCodeAfterRefactoring": "void secretName() {}",
            "filePathAfter": "secretName",
        }
    )
    assert "secretName" not in render_prompt(hidden, Prompts())[0].text


def test_new_files_are_possible_only_where_the_developers_made_one() -> None:
    assert "A new Java file is possible" not in prompt("Move Method")
    assert "A new Java file is possible" in prompt("Move Method", moveFileExist=False)


def test_examples_come_before_the_code() -> None:
    example = PromptExample("Extract Method", "void a() {}", "void b() {}", "It sums.")
    text = prompt("Extract Method", (example, example))
    assert text.count("It sums.") == 2
    assert text.index("Example 2: Extract Method") < text.index(code(CART, "public int total"))


def test_called_methods_are_shown_up_to_a_limit() -> None:
    methods = [f"methodSignature: p.A#m{n}\n{'x' * 9_000}" for n in range(9)]
    text = prompt("Extract Method", invokedMethodSet=methods)
    assert "p.A#m3" in text
    assert "p.A#m4" not in text
    assert "(5 further methods left out)" in text


def test_of_many_files_the_nearest_are_listed() -> None:
    far = [f"other/src/main/java/far/F{n:05}.java" for n in range(5_000)]
    (message,) = render_prompt(instance("Move Method"), Prompts(), java_files=[*far, *FILES])
    assert all(path in message.text for path in FILES)
    assert re.search(r"\([\d,]+ further Java files left out\)", message.text)
    assert len(message.text) < 70_000


def test_feedback_says_what_is_wrong_and_repeats_the_format() -> None:
    problem = AnswerProblem(AnswerProblemKind.NO_PARTS, "The answer has no line of number signs.")
    text = render_feedback(problem, instance("Move And Inline Method"), Prompts()).text
    assert problem.sentence in text
    assert "2 parts between lines of #####, in this order: target_file_path, refactored_class_code." in text
