"""Result files of an evaluation: the published layout, scores.json, and existing results."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.instance import Instance
from codetaste.errors import ConfigError
from codetaste.evaluation.evaluate import Evaluation, EvaluationStatus
from codetaste.evaluation.metrics import PassThresholds, TestCounts
from codetaste.evaluation.output.location import check_results_folder, results_folder
from codetaste.evaluation.output.result_files import read_recorded_tests, write_evaluation
from codetaste.evaluation.pseudo_agents import pseudo_agent_config
from codetaste.evaluation.test_runs.recorded import RecordedBaseline, compare_with_baseline
from codetaste.evaluation.trials.coverage import read_coverage
from codetaste.rules.scan.model import Scanner
from support.evaluation.trees import git_diff, rule, score, write_tree

INSTANCE = Instance("Own", "Repo", "a" * 40, "b" * 40)
BASE = {"a.py": "old(1)\n", "caf\udce9.py": "old(2)\n"}
GOLDEN = {"a.py": "new(1)\n", "caf\udce9.py": "old(2)\n"}
TESTS = TestCounts(12, 0, 1, 13)


@pytest.fixture
def evaluation(tmp_path: Path, scanner: Scanner) -> Evaluation:
    base = write_tree(tmp_path / "R", BASE)
    result = compare_with_baseline(TESTS, RecordedBaseline(PassThresholds(12, 0), 10, "baseline_results"))
    return score(
        scanner,
        base,
        git_diff(tmp_path, BASE, GOLDEN),
        [rule("p", "new(...)")],
        [rule("n", "old(...)")],
        pass_result=result,
    )


def write(folder: Path, evaluation: Evaluation, metadata: dict[str, Any] | None = None) -> dict[str, str]:
    return write_evaluation(
        folder,
        evaluation,
        instance=INSTANCE,
        agent_config=pseudo_agent_config("golden_agent"),
        inference_metadata=metadata,
        instance_metadata=None,
        timestamp="2026-01-01T00:00:00.000Z",
    )


def read(folder: Path, name: str) -> Any:
    return json.loads((folder / name).read_bytes())


def test_write_scored_patch_has_published_and_own_files(tmp_path: Path, evaluation: Evaluation) -> None:
    folder = tmp_path / "evaluation"
    written = write(folder, evaluation)
    names = {"evaluation_result.json", "rules_positive.sarif", "rules_negative.sarif", "rule_output.txt"}
    names |= {"rules_positive.yml", "rules_negative.yml", "instance_metadata.json"}
    assert written.keys() == {path.name for path in folder.iterdir()} == {*names, "scores.json"}
    rules = evaluation.rules
    assert (folder / "rules_positive.yml").read_bytes() == rules.positive_file
    assert written["rules_negative.yml"] == rules.negative_sha256
    result = read(folder, "evaluation_result.json")
    assert read(folder, "instance_metadata.json") == result["instance_metadata"]
    assert list(result) == [
        "instance_metadata",
        "agent_config",
        "agent_test_metrics",
        "agent_rule_metrics",
        "inference_metadata",
        "evaluation_timestamp",
    ]
    assert result["agent_rule_metrics"] == {
        "positive_rules_matched": 1,
        "negative_rules_matched": 1,
        "total_positive_rules": 1,
        "total_negative_rules": 1,
        "ifr": 0.5,
        "positive_ifr": 1.0,
        "negative_ifr": 0.0,
    }
    assert result["agent_test_metrics"] == {
        "passed": 12,
        "failed": 0,
        "skipped": 1,
        "total": 13,
        "error": None,
        "pass_rate": 12 / 13,
        "is_valid": True,
    }
    assert result["instance_metadata"]["base_hash"] == INSTANCE.commit_hash
    assert read_recorded_tests(folder) == TESTS
    negative = read_coverage(folder / "rules_negative.sarif", str(tmp_path.resolve()))
    assert negative.lines.keys() == {"caf\udce9.py"}


def test_scores_file_has_values_and_their_inputs(tmp_path: Path, evaluation: Evaluation) -> None:
    write(tmp_path / "e", evaluation)
    scores = read(tmp_path / "e", "scores.json")
    values = {
        key: scores[key]
        for key in ("format", "status", "ifr", "ifr_plus", "ifr_minus", "passed", "alignment")
    }
    assert values == {
        "format": 4,
        "status": "scored",
        "ifr": 0.5,
        "ifr_plus": 1.0,
        "ifr_minus": 0.0,
        "passed": True,
        "alignment": 0.5,
    }
    assert (scores["prec"], scores["added"], scores["removed"]) == (1.0, 1, 1)
    assert (scores["unmet_additive"], scores["unmet_reductive"]) == ([], ["n"])
    assert scores["baseline"] == {"min_passed": 12, "max_failed": 0, "runs": 10, "source": "baseline_results"}
    assert (scores["instance"], scores["patch_sha256"]) == (INSTANCE.id, evaluation.patch_sha256)


def test_non_finite_numbers_are_written_as_null(tmp_path: Path, evaluation: Evaluation) -> None:
    write(tmp_path / "e", evaluation, {"cost_usd": float("nan"), "additional": {"x": [float("inf"), 1.5]}})
    values = read(tmp_path / "e", "evaluation_result.json")["inference_metadata"]
    assert values == {"cost_usd": None, "additional": {"x": [None, 1.5]}}


def test_writing_twice_gives_the_same_bytes(tmp_path: Path, evaluation: Evaluation) -> None:
    assert (
        write(tmp_path / "one", evaluation)
        == write(tmp_path / "one", evaluation)
        == write(tmp_path / "two", evaluation)
    )


def test_write_unscored_patch_leaves_no_published_result_files(
    tmp_path: Path, evaluation: Evaluation, scanner: Scanner
) -> None:
    folder = tmp_path / "evaluation"
    write(folder, evaluation)
    bad = score(scanner, tmp_path / "R", b"no patch\n", [rule("p", "new(...)")], [rule("n", "old(...)")])
    assert write(folder, bad).keys() == {"rule_output.txt", "scores.json"}
    assert {path.name for path in folder.iterdir()} == {"rule_output.txt", "scores.json"}
    scores = read(folder, "scores.json")
    assert scores["status"] == "unparsable_patch"
    assert [scores[key] for key in ("ifr", "ifr_minus", "prec", "added", "alignment")] == [None] * 5


def test_recorded_tests_survive_failed_scoring(tmp_path: Path, evaluation: Evaluation) -> None:
    folder = tmp_path / "evaluation"
    write(folder, evaluation)
    write(folder, replace(evaluation, status=EvaluationStatus.PARTIAL_SCAN, rule_counts=None, precision=None))
    assert not (folder / "evaluation_result.json").exists()
    assert read_recorded_tests(folder, evaluation.patch_sha256) == read_recorded_tests(folder) == TESTS
    assert read_recorded_tests(folder, "0" * 64) is None


@pytest.mark.parametrize("content", ['{"agent_test_metrics"', "[]", "\x00", "[" * 100_000])
def test_damaged_result_error_names_path(tmp_path: Path, content: str) -> None:
    (tmp_path / "evaluation_result.json").write_text(content)
    with pytest.raises(ConfigError, match=r"evaluation_result\.json: ") as error:
        read_recorded_tests(tmp_path)
    assert len(error.value.problems) == 1


@pytest.mark.parametrize("metrics", [None, {}, {"passed": float("nan"), "failed": 0, "total": 1}, 3])
def test_result_without_tests_gives_none(tmp_path: Path, metrics: object) -> None:
    (tmp_path / "evaluation_result.json").write_text(json.dumps({"agent_test_metrics": metrics}))
    assert read_recorded_tests(tmp_path) is None
    assert read_recorded_tests(tmp_path / "nowhere") is None


def test_results_folder_depends_on_patch_name(tmp_path: Path) -> None:
    assert results_folder(tmp_path / "prediction.diff") == tmp_path / "evaluation"
    assert results_folder(tmp_path / "mine.patch") == tmp_path / "mine-evaluation"


def test_results_of_another_patch_are_not_replaced(tmp_path: Path, evaluation: Evaluation) -> None:
    folder = tmp_path / "evaluation"
    check_results_folder(folder, INSTANCE.id, evaluation.patch_sha256)
    write(folder, evaluation)
    check_results_folder(folder, INSTANCE.id, evaluation.patch_sha256)
    for instance, digest in ((INSTANCE.id, "0" * 64), ("other", evaluation.patch_sha256)):
        with pytest.raises(ConfigError, match="another patch"):
            check_results_folder(folder, instance, digest)
    (folder / "scores.json").unlink()
    with pytest.raises(ConfigError, match="not written by codetaste"):
        check_results_folder(folder, INSTANCE.id, evaluation.patch_sha256)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        check_results_folder(tmp_path / "file", INSTANCE.id, evaluation.patch_sha256)
