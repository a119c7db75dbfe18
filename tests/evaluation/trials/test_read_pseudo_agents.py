"""The golden and the null agent are what lies where they belong, whatever else takes their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import ProblemKind
from support.evaluation.published_outputs import PATH, Outputs


@pytest.mark.parametrize(("identity", "folder"), [("golden_agent", "bad"), ("bad", "golden_agent")])
def test_an_agent_is_no_reference_by_what_it_calls_itself(tmp_path: Path, identity: str, folder: str) -> None:
    made = Outputs(tmp_path / "outputs")
    made.null()
    made.trial(folder, identity=identity)
    found = read_outputs(made.root)
    assert [record.agent for record in found.records if not record.agent.startswith("null")] == [folder]
    assert [problem.kind for problem in found.problems] == [ProblemKind.NAME]


def test_a_reference_is_taken_from_its_own_place_first(tmp_path: Path) -> None:
    made = Outputs(tmp_path / "outputs")
    null = made.null()
    made.trial("null_agent", rules=(4, 4, 0, 6))
    found = read_outputs(made.root)
    assert [record.folder for record in found.records] == [null]
    (problem,) = found.problems
    assert (problem.kind, problem.location) == (ProblemKind.DUPLICATE, f"open/direct/{PATH}/null_agent")
