"""[evaluate] in a run: predictions are scored as jobs without cost, resumed, and compared at the end."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from flows.discover.test_kill import run_with_kills
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Bench, CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import (
    ALL,
    agent_table,
    make_trial_workspace,
    model_table,
    output_folder,
    read_products,
)

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
POSITIVE = """\
rules:
- id: defines-fetch-new
  message: The new name
  severity: INFO
  languages: [python]
  pattern: 'def fetch_new(...): ...'
  metadata: {nr_refactored_patterns: 1, nr_legacy_patterns: 0}
- id: passes-strict
  message: Callers pass strict
  severity: INFO
  languages: [python]
  pattern: fetch_new($KEY, strict=$HOW)
  metadata: {nr_refactored_patterns: 3, nr_legacy_patterns: 0}
"""
NEGATIVE = """\
rules:
- id: uses-fetch-old
  message: The old name
  severity: INFO
  languages: [python]
  pattern: fetch_old(...)
  metadata: {nr_refactored_patterns: 0, nr_legacy_patterns: 3}
- id: derives-from-object
  message: An explicit base
  severity: INFO
  languages: [python]
  pattern: 'class $C(object): ...'
  metadata: {nr_refactored_patterns: 0, nr_legacy_patterns: 1}
"""


def write_rules(bench: Bench, positive: str = POSITIVE, negative: str = NEGATIVE) -> None:
    folder = bench.root / "assets/rules" / bench.rows[0].path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "rules_positive.yml").write_text(positive)
    (folder / "rules_negative.yml").write_text(negative)


@pytest.fixture(scope="module")
def alpha_with_rules(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark, bubblewrap: Path
) -> TinyBenchmark:
    """The tiny benchmark with rules."""
    bench = Bench(tmp_path_factory.mktemp("ruled"))
    bench.add()
    write_rules(bench)
    return TinyBenchmark(bench, alpha.cache)


@pytest.fixture(scope="module")
def scored_run(
    tmp_path_factory: pytest.TempPathFactory, alpha_with_rules: TinyBenchmark
) -> tuple[Workspace, CommandResult, CommandResult]:
    """A run without [evaluate], and the same run resumed with it."""
    folder = tmp_path_factory.mktemp("scored")
    first = make_trial_workspace(folder, alpha_with_rules).run("--json")
    workspace = make_trial_workspace(folder, alpha_with_rules, more="[evaluate]")
    return workspace, first, workspace.run("--json")


def copy_run(scored_run: tuple[Workspace, CommandResult, CommandResult], folder: Path) -> Workspace:
    workspace = scored_run[0]
    shutil.copytree(workspace.folder, folder / "copy")
    return Workspace(folder / "copy", workspace.cache, folder / "copy" / "config.toml")


def read_scores(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "evaluation/scores.json").read_text())
    return document


def pseudo_agent_folder(workspace: Workspace, alpha_with_rules: TinyBenchmark, agent: str) -> Path:
    return workspace.out / "outputs/pseudo_agents/direct" / alpha_with_rules.row.path / agent


def started_keys(workspace: Workspace) -> list[str]:
    return [line["key"] for line in workspace.journal() if line["event"] == "started"]


def evaluation_keys(alpha_with_rules: TinyBenchmark) -> list[str]:
    row = alpha_with_rules.row.id
    return [f"evaluate/{who}/{row}" for who in ("a/open/direct", "golden_agent", "null_agent")]


def test_finished_trials_are_scored_without_model_calls(
    scored_run: tuple[Workspace, CommandResult, CommandResult], alpha_with_rules: TinyBenchmark
) -> None:
    workspace, first, result = scored_run
    assert (first.code, result.code) == (0, 0), result.err
    keys = started_keys(workspace)
    assert sorted(key for key in keys if key.startswith("evaluate/")) == evaluation_keys(alpha_with_rules)
    assert keys.count(f"infer/a/open/direct/{alpha_with_rules.row.id}/execute") == 1
    assert len(workspace.ledger("m")) == 5
    assert result.json["money"]["settled_usd"] == first.json["money"]["settled_usd"]


def test_scores_are_written_beside_prediction_in_published_layout(
    scored_run: tuple[Workspace, CommandResult, CommandResult], alpha_with_rules: TinyBenchmark
) -> None:
    workspace, _, result = scored_run
    scores = read_scores(output_folder(workspace, alpha_with_rules))
    # All but strictness: one of two additive rules, and both reductive rules.
    assert (scores["status"], scores["ifr"], scores["ifr_plus"], scores["ifr_minus"]) == (
        "scored",
        0.75,
        0.5,
        1.0,
    )
    assert scores["unmet_additive"] == ["passes-strict"]
    folder = output_folder(workspace, alpha_with_rules) / "evaluation"
    evaluation = json.loads((folder / "evaluation_result.json").read_text())
    assert evaluation["agent_rule_metrics"]["positive_rules_matched"] == 1
    assert evaluation["agent_config"]["id"] == "a"
    assert evaluation["inference_metadata"] == json.loads(
        (folder.parent / "inference_metadata.json").read_text()
    )
    assert {"rules_positive.sarif", "rules_negative.sarif"} <= {path.name for path in folder.iterdir()}
    job = result.jobs[f"evaluate/a/open/direct/{alpha_with_rules.row.id}"]
    assert (job["status"], job["money"]["settled_usd"], job["path"]) == (
        "done",
        "0",
        str(folder.parent.relative_to(workspace.folder)),
    )


def test_golden_patch_scores_one_and_empty_patch_zero(
    scored_run: tuple[Workspace, CommandResult, CommandResult], alpha_with_rules: TinyBenchmark
) -> None:
    workspace = scored_run[0]
    golden, null = (
        pseudo_agent_folder(workspace, alpha_with_rules, "golden_agent"),
        pseudo_agent_folder(workspace, alpha_with_rules, "null_agent"),
    )
    assert (read_scores(golden)["ifr"], read_scores(null)["ifr"]) == (1.0, 0.0)
    assert (null / "prediction.diff").read_bytes() == b"\n"
    assert json.loads((golden / "agent_config.json").read_text())["id"] == "golden_agent"
    assert json.loads((golden / "inference_metadata.json").read_text())["finish_reason"] == "success"


def test_finished_run_has_comparison(scored_run: tuple[Workspace, CommandResult, CommandResult]) -> None:
    _, first, result = scored_run
    assert first.json["comparison"] is None
    comparison = result.json["comparison"]
    assert comparison["systems"] == ["a"]
    estimate = next(each for each in comparison["estimates"] if each["measure"] == "ifr")
    assert estimate["mean"] == 0.75
    assert estimate["low"] < 0.75 < estimate["high"]
    references = {each["name"]: each["mean"] for each in comparison["references"] if each["measure"] == "ifr"}
    assert sorted(references.values()) == [0.0, 1.0]


def test_existing_scores_are_reused_and_missing_ones_recomputed(
    scored_run: tuple[Workspace, CommandResult, CommandResult],
    alpha_with_rules: TinyBenchmark,
    tmp_path: Path,
) -> None:
    workspace = copy_run(scored_run, tmp_path)
    before = read_products(workspace)
    (output_folder(workspace, alpha_with_rules) / "evaluation/rules_positive.sarif").unlink()
    shutil.rmtree(pseudo_agent_folder(workspace, alpha_with_rules, "golden_agent"))
    (pseudo_agent_folder(workspace, alpha_with_rules, "null_agent") / "prediction.diff").write_text(
        "from another run\n"
    )
    keys = started_keys(workspace)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    assert started_keys(workspace) == keys
    assert all(job["resumed"] for job in result.json["jobs"])
    assert read_products(workspace) == before


def test_scores_of_earlier_format_are_computed_again(
    scored_run: tuple[Workspace, CommandResult, CommandResult],
    alpha_with_rules: TinyBenchmark,
    tmp_path: Path,
) -> None:
    workspace = copy_run(scored_run, tmp_path)
    site = tmp_path / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text(
        "import codetaste.evaluation.output.scores_json as module\nmodule.SCORES_FORMAT += 1\n"
    )
    workspace.env["PYTHONPATH"] = str(site)
    path = pseudo_agent_folder(workspace, alpha_with_rules, "null_agent") / "evaluation/scores.json"
    before = json.loads(path.read_text())["format"]
    result = workspace.run("--json", "--only", "evaluate/null_agent/*")
    assert result.code == 0, result.err
    assert json.loads(path.read_text())["format"] == before + 1


@pytest.fixture(scope="module")
def rescored_run(
    scored_run: tuple[Workspace, CommandResult, CommandResult],
    alpha_with_rules: TinyBenchmark,
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[Workspace, CommandResult]:
    """The scored run again, with recorded test results and a golden patch of other code."""
    folder = tmp_path_factory.mktemp("odd")
    workspace, bench = copy_run(scored_run, folder), folder / "bench"
    shutil.copytree(alpha_with_rules.bench.root, bench)
    workspace.config.write_text(
        workspace.config.read_text().replace(str(alpha_with_rules.bench.root), str(bench))
    )
    runs = bench / "baseline_results" / alpha_with_rules.row.path
    runs.mkdir(parents=True)
    for agent, passed in (("golden_agent", 20), ("null_agent", 19)):
        counts = {"passed": passed, "failed": 1, "skipped": 0, "total": passed + 1}
        (runs / f"{agent}.jsonl").write_text(json.dumps(counts) + "\n")
    path = output_folder(workspace, alpha_with_rules) / "evaluation/evaluation_result.json"
    evaluation = json.loads(path.read_text())
    evaluation["agent_test_metrics"] = {"passed": 19, "failed": 1, "skipped": 0, "total": 20}
    path.write_text(json.dumps(evaluation))
    diff = bench / "assets/diffs" / alpha_with_rules.row.path / "golden.diff"
    diff.parent.mkdir(parents=True)
    diff.write_text(
        "diff --git a/pack/one.py b/pack/one.py\n--- a/pack/one.py\n+++ b/pack/one.py\n"
        "@@ -1,1 +1,1 @@\n-no such line\n+another line\n"
    )
    return workspace, workspace.run()


def test_recorded_test_results_decide_pass(
    rescored_run: tuple[Workspace, CommandResult], alpha_with_rules: TinyBenchmark
) -> None:
    workspace, result = rescored_run
    assert result.code == 1, result.err
    assert "IFR 0.75, PREC" in result.out
    scores = read_scores(output_folder(workspace, alpha_with_rules))
    assert (scores["passed"], scores["alignment"]) == (True, 0.75)
    assert read_scores(pseudo_agent_folder(workspace, alpha_with_rules, "null_agent"))["passed"] is True
    assert len(workspace.ledger("m")) == 5


def test_patch_that_does_not_apply_is_marked_as_bad(
    rescored_run: tuple[Workspace, CommandResult], alpha_with_rules: TinyBenchmark
) -> None:
    workspace, result = rescored_run
    assert result.code == 1, result.err
    shown = next(line for line in result.out.splitlines() if "scores of golden_agent" in line)
    assert shown.startswith("  bad ")
    assert "does not apply" in shown
    folder = pseudo_agent_folder(workspace, alpha_with_rules, "golden_agent") / "evaluation"
    assert read_scores(folder.parent)["status"] == "does_not_apply"
    assert not (folder / "rules_positive.sarif").exists()


def test_scores_with_recorded_tests_are_not_computed_again(
    rescored_run: tuple[Workspace, CommandResult],
) -> None:
    workspace = rescored_run[0]
    keys = started_keys(workspace)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    assert started_keys(workspace) == keys


def test_trial_that_a_lost_provider_ended_has_no_score_and_is_reported(
    tmp_path: Path, alpha_with_rules: TinyBenchmark
) -> None:
    uninterrupted = model_table("g", "gone") + agent_table("b", "g")
    workspace = make_trial_workspace(
        tmp_path, alpha_with_rules, more=f"{uninterrupted}[evaluate]\npseudo_agents = false"
    )
    result = workspace.run("--json")
    assert result.code == 1
    key = f"b/open/direct/{alpha_with_rules.row.id}"
    assert result.jobs[f"infer/{key}"]["status"] == "failed"
    assert result.jobs[f"evaluate/{key}"]["status"] == "skipped"
    comparison = result.json["comparison"]
    assert (comparison["trials"], comparison["systems"], comparison["references"]) == (2, ["a", "b"], [])
    means = {each["system"]: each["mean"] for each in comparison["estimates"] if each["measure"] == "ifr"}
    assert means == {"a": 0.75, "b": None}


@pytest.mark.heavy
@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
    ids=lambda number: number.name,
)
def test_run_stopped_before_scoring_resumes_with_scores(
    scored_run: tuple[Workspace, CommandResult, CommandResult],
    alpha_with_rules: TinyBenchmark,
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha_with_rules, more="[evaluate]")
    process = workspace.start("--json")
    trial = f"evaluate/a/open/direct/{alpha_with_rules.row.id}"
    while trial not in started_keys(workspace) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    stopped = process.wait(200)
    process.communicate()
    assert stopped in {-9, 130, 0}
    result = workspace.run("--json")
    assert result.code == 0, result.err
    tiny_benchmark.assert_no_finished_job_ran_twice(workspace.journal())
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    assert len(workspace.ledger("m")) == 5
    assert read_products(workspace) == read_products(scored_run[0])
    assert not [path for path in (workspace.cache / "codetaste/predictions").rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_trials_killed_ten_times_give_the_same_scores(
    tmp_path: Path, alpha_with_rules: TinyBenchmark
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    uninterrupted = make_trial_workspace(tmp_path / "other", alpha_with_rules, ALL, more="[evaluate]")
    assert uninterrupted.run("--json").code == 0
    workspace = make_trial_workspace(tmp_path / "killed", alpha_with_rules, ALL, more="[evaluate]")
    result = run_with_kills(
        workspace, 10, tiny_benchmark.count_steps(uninterrupted.journal()), random.Random(SEED)
    )
    assert result.code == 0, result.err
    tiny_benchmark.assert_no_finished_job_ran_twice(workspace.journal())
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    assert read_products(workspace) == read_products(uninterrupted)


def test_stored_config_has_absolute_benchmark_path(tmp_path: Path, alpha_with_rules: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path / "configs", alpha_with_rules, more="[evaluate]")
    relative = os.path.relpath(alpha_with_rules.bench.root, workspace.config.parent)
    workspace.config.write_text(
        workspace.config.read_text().replace(f'"{alpha_with_rules.bench.root}"', f'"{relative}"')
    )
    assert workspace.run("--only", "evaluate/null_agent/*").code == 0
    stored = json.loads((workspace.out / "config.json").read_text())["benchmark"]
    assert Path(stored["path"]).samefile(alpha_with_rules.bench.root)
    assert Path(stored["path"]).is_absolute()
