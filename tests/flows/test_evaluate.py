"""[evaluate] in a run: predictions scored as jobs, resumed, never paid for, and compared at the end."""

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
from support.flows.tiny_benchmark import Bench, Ended, Place, Tiny
from support.flows.trial_runs import ALL, agent_table, model_table, output, products, trial_place

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
POSITIVE = """\
rules:
- id: defines-fetch-new
  message: The new name
  severity: INFO
  languages: [python]
  pattern: 'def fetch_new(...): ...'
  metadata: {nr_refactored_patterns: 1, nr_legacy_patterns: 0}
- id: says-strict
  message: Callers say whether they are strict
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
def ruled(tmp_path_factory: pytest.TempPathFactory, alpha: Tiny, bubblewrap: Path) -> Tiny:
    """The tiny benchmark with rules."""
    bench = Bench(tmp_path_factory.mktemp("ruled"))
    bench.add()
    write_rules(bench)
    return Tiny(bench, alpha.cache)


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory, ruled: Tiny) -> tuple[Place, Ended, Ended]:
    """Trials that were done before anybody thought of scores, and the same run when it had [evaluate]."""
    folder = tmp_path_factory.mktemp("scored")
    first = trial_place(folder, ruled).run("--json")
    where = trial_place(folder, ruled, more="[evaluate]")
    return where, first, where.run("--json")


def copied(scored: tuple[Place, Ended, Ended], folder: Path) -> Place:
    where = scored[0]
    shutil.copytree(where.folder, folder / "copy")
    return Place(folder / "copy", where.cache, folder / "copy" / "config.toml")


def scores(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "evaluation/scores.json").read_text())
    return told


def pseudo(where: Place, ruled: Tiny, agent: str) -> Path:
    return where.out / "outputs/pseudo_agents/direct" / ruled.row.path / agent


def started(where: Place) -> list[str]:
    return [line["key"] for line in where.journal() if line["event"] == "started"]


def evaluations(ruled: Tiny) -> list[str]:
    row = ruled.row.id
    return [f"evaluate/{who}/{row}" for who in ("a/open/direct", "golden_agent", "null_agent")]


def test_trials_that_were_done_earlier_are_scored_without_a_model_call(
    scored: tuple[Place, Ended, Ended], ruled: Tiny
) -> None:
    where, first, done = scored
    assert (first.code, done.code) == (0, 0), done.err
    keys = started(where)
    assert sorted(key for key in keys if key.startswith("evaluate/")) == evaluations(ruled)
    assert keys.count(f"infer/a/open/direct/{ruled.row.id}/execute") == 1
    assert len(where.ledger("m")) == 5
    assert done.json["money"]["settled_usd"] == first.json["money"]["settled_usd"]


def test_what_a_prediction_is_worth_lies_beside_it_in_the_published_layout(
    scored: tuple[Place, Ended, Ended], ruled: Tiny
) -> None:
    where, _, done = scored
    told = scores(output(where, ruled))
    # Everything but strictness: one of two additive rules, and both reductive ones.
    assert (told["status"], told["ifr"], told["ifr_plus"], told["ifr_minus"]) == ("scored", 0.75, 0.5, 1.0)
    assert told["unmet_additive"] == ["says-strict"]
    folder = output(where, ruled) / "evaluation"
    result = json.loads((folder / "evaluation_result.json").read_text())
    assert result["agent_rule_metrics"]["positive_rules_matched"] == 1
    assert result["agent_config"]["id"] == "a"
    assert result["inference_metadata"] == json.loads((folder.parent / "inference_metadata.json").read_text())
    assert {"rules_positive.sarif", "rules_negative.sarif"} <= {path.name for path in folder.iterdir()}
    job = done.jobs[f"evaluate/a/open/direct/{ruled.row.id}"]
    assert (job["status"], job["money"]["settled_usd"], job["path"]) == (
        "done",
        "0",
        str(folder.parent.relative_to(where.folder)),
    )


def test_the_golden_patch_scores_all_and_no_patch_nothing(
    scored: tuple[Place, Ended, Ended], ruled: Tiny
) -> None:
    where = scored[0]
    golden, null = pseudo(where, ruled, "golden_agent"), pseudo(where, ruled, "null_agent")
    assert (scores(golden)["ifr"], scores(null)["ifr"]) == (1.0, 0.0)
    assert (null / "prediction.diff").read_bytes() == b"\n"
    assert json.loads((golden / "agent_config.json").read_text())["id"] == "golden_agent"
    assert json.loads((golden / "inference_metadata.json").read_text())["finish_reason"] == "success"


def test_a_run_ends_with_the_comparison(scored: tuple[Place, Ended, Ended]) -> None:
    _, first, done = scored
    assert first.json["comparison"] is None
    told = done.json["comparison"]
    assert told["systems"] == ["a"]
    standing = next(each for each in told["estimates"] if each["measure"] == "ifr")
    assert standing["mean"] == 0.75
    assert standing["low"] < 0.75 < standing["high"]
    worth = {each["name"]: each["mean"] for each in told["references"] if each["measure"] == "ifr"}
    assert sorted(worth.values()) == [0.0, 1.0]


def test_existing_scores_are_reused_and_missing_ones_recomputed(
    scored: tuple[Place, Ended, Ended], ruled: Tiny, tmp_path: Path
) -> None:
    where = copied(scored, tmp_path)
    before = products(where)
    (output(where, ruled) / "evaluation/rules_positive.sarif").unlink()
    shutil.rmtree(pseudo(where, ruled, "golden_agent"))
    (pseudo(where, ruled, "null_agent") / "prediction.diff").write_text("another run was here\n")
    keys = started(where)
    done = where.run("--json")
    assert done.code == 0, done.err
    assert started(where) == keys
    assert all(job["resumed"] for job in done.json["jobs"])
    assert products(where) == before


@pytest.fixture(scope="module")
def odd(
    scored: tuple[Place, Ended, Ended], ruled: Tiny, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Place, Ended]:
    """The scored run once more: test results were recorded, and the golden patch is of some other code."""
    folder = tmp_path_factory.mktemp("odd")
    where, bench = copied(scored, folder), folder / "bench"
    shutil.copytree(ruled.bench.root, bench)
    where.config.write_text(where.config.read_text().replace(str(ruled.bench.root), str(bench)))
    runs = bench / "baseline_results" / ruled.row.path
    runs.mkdir(parents=True)
    for agent, passed in (("golden_agent", 20), ("null_agent", 19)):
        counts = {"passed": passed, "failed": 1, "skipped": 0, "total": passed + 1}
        (runs / f"{agent}.jsonl").write_text(json.dumps(counts) + "\n")
    path = output(where, ruled) / "evaluation/evaluation_result.json"
    result = json.loads(path.read_text())
    result["agent_test_metrics"] = {"passed": 19, "failed": 1, "skipped": 0, "total": 20}
    path.write_text(json.dumps(result))
    diff = bench / "assets/diffs" / ruled.row.path / "golden.diff"
    diff.parent.mkdir(parents=True)
    diff.write_text(
        "diff --git a/pack/one.py b/pack/one.py\n--- a/pack/one.py\n+++ b/pack/one.py\n"
        "@@ -1,1 +1,1 @@\n-nobody wrote this\n+nor this\n"
    )
    return where, where.run("--set", "evaluate.tests=true")


def test_recorded_test_results_say_whether_a_prediction_passes(odd: tuple[Place, Ended], ruled: Tiny) -> None:
    where, done = odd
    assert done.code == 0, done.err
    assert "PASS is computed from recorded results" in done.err
    assert "IFR 0.75, PREC" in done.out
    told = scores(output(where, ruled))
    assert (told["passed"], told["alignment"]) == (True, 0.75)
    assert scores(pseudo(where, ruled, "null_agent"))["passed"] is True
    assert len(where.ledger("m")) == 5


def test_what_becomes_of_a_patch_is_a_result_and_no_failure_of_the_run(
    odd: tuple[Place, Ended], ruled: Tiny
) -> None:
    where, done = odd
    assert done.code == 0, done.err
    shown = next(line for line in done.out.splitlines() if "scores of golden_agent" in line)
    assert "ok" in shown
    assert "does not apply" in shown
    folder = pseudo(where, ruled, "golden_agent") / "evaluation"
    assert scores(folder.parent)["status"] == "does_not_apply"
    assert not (folder / "rules_positive.sarif").exists()


def test_nothing_is_scored_twice_though_scores_say_more_than_they_did(odd: tuple[Place, Ended]) -> None:
    where = odd[0]
    keys = started(where)
    done = where.run("--json")
    assert done.code == 0, done.err
    assert started(where) == keys


def test_trial_without_prediction_counts_zero_and_is_reported(tmp_path: Path, ruled: Tiny) -> None:
    other = model_table("g", "gone") + agent_table("b", "g")
    where = trial_place(tmp_path, ruled, more=f"{other}[evaluate]\npseudo_agents = false")
    done = where.run("--json")
    assert done.code == 1
    key = f"b/open/direct/{ruled.row.id}"
    assert done.jobs[f"infer/{key}"]["status"] == "failed"
    assert done.jobs[f"evaluate/{key}"]["status"] == "skipped"
    told = done.json["comparison"]
    assert (told["trials"], told["systems"], told["references"]) == (2, ["a", "b"], [])
    means = {each["system"]: each["mean"] for each in told["estimates"] if each["measure"] == "ifr"}
    assert means == {"a": 0.75, "b": 0.0}


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)],
    ids=lambda number: number.name,
)
def test_run_stopped_before_scoring_resumes_with_scores(
    scored: tuple[Place, Ended, Ended], ruled: Tiny, tmp_path: Path, number: signal.Signals
) -> None:
    where = trial_place(tmp_path, ruled, more="[evaluate]")
    process = where.start("--json")
    trial = f"evaluate/a/open/direct/{ruled.row.id}"
    while trial not in started(where) and process.poll() is None:
        time.sleep(0.005)
    process.send_signal(number)
    stopped = process.wait(60)
    process.communicate()
    assert stopped in {-9, 130, 0}
    done = where.run("--json")
    assert done.code == 0, done.err
    tiny_benchmark.assert_no_finished_job_ran_twice(where.journal())
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    assert len(where.ledger("m")) == 5
    assert products(where) == products(scored[0])
    assert not [path for path in (where.cache / "codetaste/predictions").rglob("*") if path.is_file()]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_trials_killed_ten_times_give_the_same_scores(tmp_path: Path, ruled: Tiny) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    other = trial_place(tmp_path / "other", ruled, ALL, more="[evaluate]")
    assert other.run("--json").code == 0
    where = trial_place(tmp_path / "killed", ruled, ALL, more="[evaluate]")
    done = run_with_kills(where, 10, tiny_benchmark.progress(other.journal()), random.Random(SEED))
    assert done.code == 0, done.err
    tiny_benchmark.assert_no_finished_job_ran_twice(where.journal())
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    assert products(where) == products(other)


def test_the_benchmark_of_a_run_is_found_wherever_its_report_is_made(tmp_path: Path, ruled: Tiny) -> None:
    where = trial_place(tmp_path / "configs", ruled, more="[evaluate]")
    relative = os.path.relpath(ruled.bench.root, where.config.parent)
    where.config.write_text(where.config.read_text().replace(f'"{ruled.bench.root}"', f'"{relative}"'))
    assert where.run("--only", "evaluate/null_agent/*").code == 0
    kept = json.loads((where.out / "config.json").read_text())["benchmark"]
    assert Path(kept["path"]).samefile(ruled.bench.root)
    assert Path(kept["path"]).is_absolute()
