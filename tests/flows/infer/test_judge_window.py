"""A judge whose model cannot take the plans as long as they are, in bubblewrap, with scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.flows.infer.judge import MIN_PLAN_CHARS
from support.flows.tiny_benchmark import TinyBenchmark, Workspace
from support.flows.trial_runs import make_trial_workspace, output_folder, read_metadata

TRACK = "open/multiplan"


def read_cuts(workspace: Workspace) -> list[dict[str, Any]]:
    """Return the recorded cuts of the plans."""
    effects = [line for line in workspace.journal() if line["event"] == "effect"]
    return [line["value"] for line in effects if "/shorten-" in line["name"]]


@pytest.mark.heavy
@pytest.mark.parametrize(("window", "cuts"), [("", 2), ("context_window = 16000", 1)])
def test_plans_are_cut_to_one_length(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path, tools: None, window: str, cuts: int
) -> None:
    """Both if the provider refuses them, and if the size of the window is known before."""
    workspace = make_trial_workspace(
        tmp_path, alpha, (TRACK,), coder="long_plans", judge="narrow_judge", judge_model=window
    )
    result = workspace.run("--json")
    assert result.code == 0, result.err
    folder = output_folder(workspace, alpha, TRACK)
    assert read_metadata(folder)["finish_reason"] == "success"
    assert "marker-3" in (folder / "prediction.diff").read_text()
    plan = (folder / "refactoring_plans/refactoring_plan1.md").read_text()
    assert len(plan) > 48_000, "the plan itself is whole"
    assert len(workspace.ledger("judge")) == 2
    lengths = [cut["plan_chars"] for cut in read_cuts(workspace)]
    assert (len(lengths), lengths) == (cuts, sorted(lengths, reverse=True))
    assert 2_500 < lengths[-1] < 20_000, "the shorter plans are whole"
    calls = len(workspace.ledger("m"))
    folder.joinpath("prediction.diff").unlink()
    again = workspace.run("--json")
    assert again.code == 0
    assert (len(workspace.ledger("m")), len(workspace.ledger("judge"))) == (calls, 2)


@pytest.mark.heavy
def test_judge_that_can_take_no_plans_ends_the_trial(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path, tools: None
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, (TRACK,), coder="long_plans", judge="blind_judge")
    result = workspace.run("--json")
    metadata = read_metadata(output_folder(workspace, alpha, TRACK))
    assert metadata["finish_reason"] == "error_judge"
    cuts = [cut["plan_chars"] for cut in read_cuts(workspace)]
    assert cuts == sorted(cuts, reverse=True)
    assert cuts[-1] == MIN_PLAN_CHARS
    logs = [file.read_text() for file in (workspace.out / "logs").rglob("*.jsonl")]
    assert any("cannot read the plans" in log for log in logs)
    bought = len(workspace.ledger("m"))
    assert workspace.run("--json").code == result.code
    assert len(workspace.ledger("m")) == bought, "nothing is bought again"


@pytest.mark.parametrize(
    ("judge", "reason"), [("thinking_judge", "success"), ("endless_judge", "error_judge")]
)
def test_judge_that_thinks_until_its_cap_gets_a_larger_one_once(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path, judge: str, reason: str
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, (TRACK,), judge=judge)
    result = workspace.run("--json")
    metadata = read_metadata(output_folder(workspace, alpha, TRACK))
    assert metadata["finish_reason"] == reason
    assert len(workspace.ledger("judge")) == 2
    assert metadata["additional"]["steps"]["judge"]["tokens"]["input"] == sum(
        line["usage"]["input"] for line in workspace.ledger("judge")
    )
    assert ("raise judge_max_output_tokens" in json.dumps(workspace.journal())) is (reason == "error_judge")
    assert result.code == (reason == "error_judge")
