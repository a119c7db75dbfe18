"""The developers' own change of each published instance, written as an answer, read and applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.swe_refactor.answers.apply import EditedFiles, apply_answer
from codetaste.swe_refactor.answers.developer import developer_answer
from codetaste.swe_refactor.answers.java.syntax import normal_code, parse_java
from codetaste.swe_refactor.answers.parse import ParsedAnswer, parse_answer
from codetaste.swe_refactor.answers.problem import AnswerProblem
from codetaste.swe_refactor.dataset.format import read_instances
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.swe_refactor.shop import Files

ALONE = {1, 2, 13}
"""The commit changes nothing else in the file, and comes out byte for byte."""
OTHER_METHOD = {0}
"""RefactoringMiner pairs withMethodRules with withRules, another method that was there before."""


@pytest.fixture
def instances(published_data: Path) -> tuple[RefactoringInstance, ...]:
    return read_instances(published_data.parent / "swe_refactor" / "pure_refactor_junit4.json")


def use(instance: RefactoringInstance) -> EditedFiles | AnswerProblem:
    parsed = parse_answer(developer_answer(instance), instance)
    assert isinstance(parsed, ParsedAnswer), parsed
    base = {instance.file_path_before: instance.source_code_before_for_whole.encode()}
    return apply_answer(instance, parsed, Files(base))


def test_developers_methods_come_out_at_their_place(instances: tuple[RefactoringInstance, ...]) -> None:
    refused = set()
    for number, instance in enumerate(instances):
        result = use(instance)
        if isinstance(result, AnswerProblem):
            assert result.kind == "method_name"
            refused.add(number)
            continue
        (content,) = result.files.values()
        unit = parse_java(content)
        assert unit is not None
        assert unit.error_at is None, number
        extracted = instance.diff_source_code_set
        method = instance.source_code_after_refactoring.removesuffix("\n".join(extracted))
        for code in (method, *extracted):
            assert normal_code(code.encode()) in normal_code(content), number
        if "Extract" not in instance.type:  # what was inlined or moved is gone from its place
            imports = [each for each in result.edits if each.content.strip().startswith(b"import ")]
            assert len(result.edits) - len(imports) == 2, number
    assert refused == OTHER_METHOD


def test_commits_that_change_nothing_else_come_out_byte_for_byte(
    instances: tuple[RefactoringInstance, ...],
) -> None:
    same = set()
    for number, instance in enumerate(instances):
        result = use(instance)
        if isinstance(result, EditedFiles):
            same |= {number} & {
                number
                for text in result.files.values()
                if text.decode() == instance.source_code_after_for_whole
            }
    assert same == ALONE
