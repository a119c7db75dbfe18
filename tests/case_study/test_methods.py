"""Case studies and labels of SWE-Refactor's trials: all answers beside the developers' method."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.case_study.read import read_case_studies, read_labels
from codetaste.results.load import load
from support.case_study.studied_methods import make_studied_methods
from support.case_study.studied_run import StudiedRun
from support.flows.tiny_benchmark import Bench


@pytest.fixture
def methods(tmp_path: Path, bench: Bench, bubblewrap: Path) -> StudiedRun:
    """A run of two strategies, and the config of an honest examiner."""
    return make_studied_methods(tmp_path, bench)


def test_answers_are_compared_and_the_report_is_filed(methods: StudiedRun) -> None:
    result = methods.study()
    assert result.code == 0, result.err
    (study,) = read_case_studies(methods.out)
    assert [trial.agent for trial in study.trials] == ["simple/m", "multi-agent/m"]
    assert all(claim.verified for trial in study.trials for claim in trial.claims)
    assert (study.origin.instance, study.origin.track, study.origin.mode) == ("i1", "swe-refactor", "")
    assert study.path == methods.studies / "reports/swe-refactor/i1/examiner.md"
    assert study.path.read_text().startswith("# i1, swe-refactor\n")


@pytest.mark.heavy
def test_each_answer_gets_a_label_which_its_row_has(methods: StudiedRun) -> None:
    result = methods.study("--labels", "--agents", "simple/*")
    assert result.code == 0, result.err
    (label,) = read_labels(methods.out)
    assert (label.agent, label.verified) == ("simple/m", True)
    assert {row.strategy: row.failure_labels for row in load(methods.out).trials} == {
        "simple": ("another part of the system",),
        "multi-agent": (),
    }


def test_what_is_missing_gets_one_clear_line(methods: StudiedRun) -> None:
    def problem(*more: str) -> str:
        result = methods.study("--dry-run", *more)
        assert (result.code, "Traceback" in result.err) == (2, False)
        return json.dumps(result.json["error"])

    assert "did you mean 'multi-agent/m'" in problem("--agents", "multi-agnt/m")
    assert "SWE-Refactor has no tracks" in problem("--track", "open")
    assert "no trial at a selected instance" in problem("--instance", "i2")
    trials = methods.out / "swe_refactor/trials.jsonl"
    content = trials.read_text()
    trials.write_text(content[:-20])
    assert "trials.jsonl, line 2: not valid JSON" in problem()
    trials.unlink()
    assert "written when the trials of the run have ended" in problem()
    trials.write_text(content)
    config = json.loads((methods.out / "config.json").read_text())
    config["swe_refactor"]["instances"] = "instances.json"
    (methods.out / "config.json").write_text(json.dumps(config))
    assert "add instances and repositories to [case_study]" in problem()
