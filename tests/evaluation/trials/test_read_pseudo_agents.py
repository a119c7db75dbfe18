"""Pseudo agents are identified by their folder, not by an agent's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import ProblemKind
from support.evaluation.published_outputs import PATH, Outputs


@pytest.mark.parametrize(("identity", "folder"), [("golden_agent", "bad"), ("bad", "golden_agent")])
def test_agent_with_pseudo_agent_name_is_no_pseudo_agent(tmp_path: Path, identity: str, folder: str) -> None:
    outputs = Outputs(tmp_path / "outputs")
    outputs.add_null()
    outputs.add_trial(folder, identity=identity)
    found = read_outputs(outputs.root)
    assert [record.agent for record in found.records if not record.agent.startswith("null")] == [folder]
    assert [problem.kind for problem in found.problems] == [ProblemKind.NAME]


def test_pseudo_agent_folder_takes_precedence(tmp_path: Path) -> None:
    outputs = Outputs(tmp_path / "outputs")
    null = outputs.add_null()
    outputs.add_trial("null_agent", rules=(4, 4, 0, 6))
    found = read_outputs(outputs.root)
    assert [record.folder for record in found.records] == [null]
    (problem,) = found.problems
    assert (problem.kind, problem.location) == (ProblemKind.DUPLICATE, f"open/direct/{PATH}/null_agent")
