"""Contradictions in an instance are named."""

from __future__ import annotations

from typing import Any

import pytest

from codetaste.swe_refactor.dataset.consistency import find_inconsistencies
from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from support.swe_refactor.documents import document


def faults(**changes: Any) -> list[str]:
    return list(find_inconsistencies(RefactoringInstance.from_document(document(**changes))))


def test_a_sound_instance_has_none() -> None:
    assert faults() == []
    assert faults(type="Move Method", diffSourceCodeSet=[]) == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"type": "Rename Method"}, "type: Rename Method is none of the six types"),
        ({"uniqueId": "x_1_2"}, "uniqueId: it does not begin with the commit"),
        ({"methodNameBefore": "p.B#a"}, "methodNameBefore: it is no method of classNameBefore"),
        ({"sourceCodeBeforeRefactoring": "int aa() {"}, "sourceCodeBeforeRefactoring: it has no method a"),
        ({"diffSourceCodeSet": ["import x.bb;"]}, "diffSourceCodeSet: it has no method b"),
        ({"isPureRefactoring": False}, "isPureRefactoring: it is not what purityCheckResultList says"),
    ],
)
def test_a_contradiction_is_named(changes: dict[str, Any], fault: str) -> None:
    assert faults(**changes) == [fault]


def test_lines_that_no_file_has_are_named() -> None:
    places = document()["diffLocations"]
    places[1] = {**places[1], "startLine": 9, "endLine": 3}
    assert faults(diffLocations=places) == ["diffLocations.1: lines 9 to 3"]
