"""The corpus: what is an example, what overlaps with an instance, and what a bad file gets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.examples.corpus import read_corpus
from codetaste.swe_refactor.examples.overlap import normalise_code
from support.swe_refactor.documents import document
from support.swe_refactor.example_records import make_record, write_corpus

LONG_METHOD = "public int total(List<Order> orders) { return orders.stream().mapToInt(Order::price).sum(); }"


def instance(**changes: Any) -> RefactoringInstance:
    return RefactoringInstance.from_document(document(**changes))


def test_an_example_has_its_code_on_both_sides(tmp_path: Path) -> None:
    (example,) = read_corpus(write_corpus(tmp_path, [make_record()]), ()).examples
    assert example.name == "owner/shop"
    assert example.id.startswith("owner/shop/aaaaaaaaaaaa/")
    assert "int total" in example.source_code_before_refactoring
    assert "this::priced" in example.source_code_after_refactoring
    assert example.related_code == "int count() {\n        return total();\n    }"
    assert example.document("Adds prices.").text.startswith("Adds prices.\n\n")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"type": "Rename Method"}, "other_type"),
        ({"purityCheck": {"isPure": False}}, "not_pure"),
        ({"purityCheck": None}, "not_pure"),
        ({"humanPure": False}, "not_pure"),
    ],
)
def test_what_is_no_pure_refactoring_of_the_six_types_is_left_out(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    corpus = read_corpus(write_corpus(tmp_path, [make_record(), make_record(1, **changes)]), ())
    assert [each.reason for each in corpus.left_out] == [reason]
    assert corpus.describe() == f"1 example; left out: 1 {reason}"


def test_examples_that_people_did_not_judge_are_used(tmp_path: Path) -> None:
    assert read_corpus(write_corpus(tmp_path, [make_record(humanPure=None)]), ()).left_out == ()


def test_a_commit_of_an_instance_is_left_out_and_named(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, [make_record(), make_record(1, commitId="b" * 40)])
    corpus = read_corpus(path, [instance(commitId="b" * 40, uniqueId="u1")])
    assert [each.detail for each in corpus.left_out] == ["its commit bbbbbbbbbbbb is that of the instance u1"]
    assert len(corpus.examples) == 1


@pytest.mark.parametrize("side", ["sourceCodeBeforeRefactoring", "sourceCodeAfterRefactoring"])
def test_a_method_of_an_instance_in_another_layout_is_left_out_and_named(tmp_path: Path, side: str) -> None:
    record = make_record(1, **{side: LONG_METHOD.replace(" ", "\n  ").replace("{", "{ // adds up")})
    corpus = read_corpus(
        write_corpus(tmp_path, [make_record(), record]),
        [instance(sourceCodeBeforeRefactoring=LONG_METHOD, uniqueId="u1")],
    )
    word = "before" if "Before" in side else "after"
    assert [each.detail for each in corpus.left_out] == [f"its method {word} is one of the instance u1"]


def test_a_short_method_such_as_a_getter_is_no_overlap(tmp_path: Path) -> None:
    getter = "int size() { return size; }"
    record = make_record(1, sourceCodeBeforeRefactoring=getter)
    corpus = read_corpus(write_corpus(tmp_path, [record]), [instance(sourceCodeBeforeRefactoring=getter)])
    assert corpus.left_out == ()


def test_a_duplicate_is_left_out_and_names_the_first(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, [make_record(), make_record(commitId="c" * 40), make_record()])
    corpus = read_corpus(path, ())
    first = corpus.examples[0].id
    assert [each.detail for each in corpus.left_out] == [f"its code is that of {first}"] * 2


def test_an_empty_corpus_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"examples\.jsonl: no example is left \(0 examples\)$"):
        read_corpus(write_corpus(tmp_path, []), ())


def test_a_corpus_of_which_nothing_is_left_says_why(tmp_path: Path) -> None:
    path = write_corpus(tmp_path, [make_record(humanPure=False)])
    with pytest.raises(ConfigError, match=r"no example is left \(0 examples; left out: 1 not_pure\)$"):
        read_corpus(path, ())


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "not valid JSON"),
        ("[1]", "the line: Input should be"),
        ("{}", "type: Field required; description: Field required; repository: Field required"),
        (json.dumps(make_record(commitId="main")), "commitId: String should match"),
        (json.dumps(make_record(startLine="12")), "startLine: Input should be a valid integer"),
        (json.dumps(make_record(sourceCodeBeforeRefactoring="{ }")), "it has no word"),
        (
            json.dumps(make_record(sourceCodeBeforeRefactoring="int x; " * 750_000)),
            "5,250,000 characters, at most 1,000,000",
        ),
        ("[" * 100_000, "not valid JSON"),
    ],
    ids=range(8),
)
def test_a_line_that_is_no_example_is_one_line_with_its_number(
    tmp_path: Path, line: str, problem: str
) -> None:
    path = write_corpus(tmp_path, [make_record()])
    path.write_text(path.read_text() + "\n" + line + "\n")
    with pytest.raises(ConfigError) as caught:
        read_corpus(path, ())
    (message,) = caught.value.problems
    assert message.startswith(f"{path}, line 3: ")
    assert problem in message


def test_many_bad_lines_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "examples.jsonl"
    path.write_text("{\n" * 500)
    with pytest.raises(ConfigError) as caught:
        read_corpus(path, ())
    assert caught.value.problems[-1] == f"{path}: 480 more problems"


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nothing\.jsonl: cannot be read: No such file"):
        read_corpus(tmp_path / "nothing.jsonl", ())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int a = 1; // one", "int a=1;"),
        ("/* a\n * b */ int a;", "int a;"),
        ("/** open", ""),
        ("a /", "a/"),
    ],
)
def test_comments_and_space_do_not_count(one: str, other: str) -> None:
    assert normalise_code(one) == normalise_code(other)


@pytest.mark.parametrize("literal", ['"a // b"', '"/* a */"', '"\\" // "', "'\"'", '"""\n a // b\n"""'])
def test_texts_in_quotes_stay(literal: str) -> None:
    assert normalise_code(f"x = {literal};") == f"x={literal};"


@given(st.text(alphabet="ab\"'/* \n\\"))
def test_any_text_can_be_normalised_twice(text: str) -> None:
    once = normalise_code(text)
    assert len(once) <= len(text)
