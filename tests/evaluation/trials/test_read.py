"""Output trees are read as records, with the values of the published harness and codetaste's own first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.errors import ConfigError
from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.trials.read import merge_records, read_outputs
from codetaste.evaluation.trials.records import ProblemKind, TrialRecord, TrialSource, TrialStatus
from support.evaluation.published_outputs import BASE, GOLDEN_HASH, ID, PATH, Outputs, make_scores, write_json


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return Outputs(tmp_path / "checkout" / "outputs")


def read_only_trial(root: Path, benchmark: Benchmark | None = None) -> TrialRecord:
    """The one trial below ``root`` of no pseudo agent; check that there are no problems."""
    reading = read_outputs(root, benchmark)
    assert not reading.problems
    (record,) = [record for record in reading.records if not record.pseudo]
    return record


def test_published_trial_has_values_of_its_files(outputs: Outputs) -> None:
    outputs.add_trial(at="open/plan", metadata={"additional": {"turns": 7}})
    write_json(
        outputs.root / "open/plan" / PATH / "a/plan_metadata.json",
        {
            "cost_usd": 0.5,
            "start_time": "2025-11-01T09:00:00Z",
            "finish_time": "2025-11-01T09:01:00Z",
            "finish_reason": "success",
        },
    )
    outputs.add_null()
    record = read_only_trial(outputs.root)
    assert (record.run, record.metadata.source, record.agent) == ("checkout", TrialSource.PUBLISHED, "a")
    assert (record.track, record.mode, record.instance, record.repository) == ("open", "plan", ID, "Made/Up")
    assert (record.metadata.model, record.metadata.harness, record.metadata.finish_reason) == (
        "sonnet",
        "claude-code",
        "success",
    )
    assert (record.scores.status, record.scores.reason) == (TrialStatus.SCORED, "")
    assert (record.scores.ifr, record.scores.ifr_plus, record.scores.ifr_minus) == (7 / 10, 3 / 4, 4 / 6)
    assert (record.scores.tests, record.scores.passed) == (TestCounts(20, 1, 0, 21), True)
    assert (record.scores.added, record.scores.removed, record.scores.edited) == (3, 2, 5)
    assert (record.scores.prec, record.scores.prec_plus, record.scores.prec_minus) == (3 / 5, 2 / 3, 1 / 2)
    assert (record.metadata.cost_usd, record.metadata.time_s, record.metadata.turns) == (1.75, 660.0, 7)
    assert (record.scores.alignment, record.scores.alignment_plus, record.scores.alignment_minus) == (
        0.7,
        3 / 4,
        4 / 6,
    )


@pytest.mark.parametrize("root", ["", "outputs", "outputs/open", "outputs/open/plan"])
def test_checkout_outputs_track_and_mode_folders_read_equally(
    outputs: Outputs, root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outputs.add_trial(at="open/plan")
    outputs.add_null()
    write_json(
        outputs.root / "open/plan" / PATH / "a/plan_metadata.json",
        {"cost_usd": 0.5, "finish_reason": "success"},
    )
    for named in (outputs.root.parent / root, Path()):
        record = read_only_trial(named)
        assert (record.run, record.track, record.mode, record.scores.prec) == (
            "checkout",
            "open",
            "plan",
            3 / 5,
        )
        monkeypatch.chdir(named)


def test_bare_owner_folders_take_track_and_mode_from_metadata(outputs: Outputs, tmp_path: Path) -> None:
    outputs.add_trial(at="instructed/direct")
    bare = (outputs.root / "instructed/direct").rename(tmp_path / "bare")
    record = read_only_trial(bare)
    assert (record.track, record.mode, record.scores.prec) == ("instructed", "direct", None)
    assert record.scores.notes[0] == "no precision: the pseudo agents' outputs are missing"


def test_step_costs_do_not_depend_on_where_mode_is_recorded(outputs: Outputs, tmp_path: Path) -> None:
    folder = outputs.add_trial(at="open/plan")
    write_json(folder / "plan_metadata.json", {"cost_usd": 0.5, "finish_reason": "success"})
    cost = read_only_trial(outputs.root).metadata.cost_usd
    assert read_only_trial((outputs.root / "open/plan").rename(tmp_path / "bare")).metadata.cost_usd == cost
    assert cost is not None
    assert cost > 0.5


def test_pseudo_agents_belong_to_no_track(outputs: Outputs) -> None:
    outputs.add_null()
    (record,) = read_outputs(outputs.root).records
    assert record.pseudo
    assert (record.track, record.mode, record.scores.ifr, record.scores.prec) == ("", "direct", 0.0, 0.0)
    assert record.published is not None


def test_language_and_category_come_from_benchmark(outputs: Outputs) -> None:
    outputs.add_trial()
    outputs.add_null()
    row = Instance("Made", "Up", BASE, GOLDEN_HASH, None, "api", "go")
    record = read_only_trial(outputs.root, Benchmark(outputs.root.parent, (row,)))
    assert (record.language, record.category) == ("go", "api")


def test_record_has_values_of_published_harness(outputs: Outputs) -> None:
    outputs.add_trial(rules=(0, 0, 0, 0), tests=None, metadata={"cost_usd": -1.0})
    outputs.add_null()
    outputs.add_baselines((20, 1), (21, 0))
    reading = read_outputs(outputs.root)
    (record,) = [record for record in reading.records if not record.pseudo]
    assert record.published is not None
    assert (record.published.ifr, record.published.ifr_plus, record.published.ifr_minus) == (1.0, 1.0, 1.0)
    assert (record.published.passed, record.published.alignment) == (0.0, 0.0)
    assert (record.published.prec, record.published.cost_usd) == (3 / 5, None)
    # In codetaste, no rules give no rate, and no test output gives no test run.
    assert (record.scores.ifr, record.scores.ifr_plus, record.scores.passed, record.metadata.cost_usd) == (
        None,
        None,
        None,
        None,
    )
    assert [problem.kind for problem in reading.problems] == [ProblemKind.RULES]


@pytest.mark.parametrize(
    "wrong",
    [
        {"metadata": {"cost_usd": None}},
        {"metadata": {"finish_reason": "max_turns"}},
        {"metadata": {"mode": None, "description_type": None}},
        {"tests": {"passed": 1}},
    ],
)
def test_trial_unreadable_for_published_harness_has_no_published_scores(
    outputs: Outputs, wrong: dict[str, Any]
) -> None:
    outputs.add_trial(**wrong)
    (record,) = read_outputs(outputs.root).records
    assert record.published is None
    assert (record.scores.status, record.scores.ifr) == (TrialStatus.SCORED, 0.7)


def test_baseline_runs_override_metadata(outputs: Outputs) -> None:
    outputs.add_trial()
    outputs.add_null()
    outputs.add_baselines((21, 0))
    record = read_only_trial(outputs.root)
    assert record.scores.passed is False
    assert record.published is not None
    assert record.published.passed == 0.0


def test_test_output_without_result_is_a_crash(outputs: Outputs) -> None:
    folder = outputs.add_trial(tests=None)
    (folder / "evaluation/test_output.txt").write_text("Killed")
    (record,) = read_outputs(outputs.root).records
    assert record.scores.tests == TestCounts(0, 0, error="the test run gave no result")
    assert record.scores.passed is False


def test_own_scores_override_published_result(outputs: Outputs) -> None:
    folder = outputs.add_trial(
        metadata={"additional": {"codetaste_version": "0.6.0", "turns": 3, "tool_calls": 9}}
    )
    write_json(folder / "evaluation/scores.json", make_scores())
    (folder / "evaluation/rules_positive.sarif").unlink()
    write_json(folder / "evaluation/activity.json", {"commands": 5, "test_runs": 1})
    record = read_only_trial(outputs.root)
    assert (
        record.metadata.source,
        record.scores.ifr,
        record.scores.prec,
        record.scores.added,
        record.scores.passed,
    ) == (*(TrialSource.CODETASTE, 0.5, 0.25, 4, False),)
    assert (record.metadata.turns, record.metadata.tool_calls, record.scores.scored_by) == (
        3,
        9,
        "codetaste 0.6.0, opengrep 1.30.0",
    )
    assert record.activity is not None
    assert (record.activity.commands, record.activity.ran_tests) == (5, True)
    assert record.scores.notes == ("a note",)


@pytest.mark.parametrize(
    ("status", "read_as"),
    [
        ("does_not_apply", TrialStatus.DOES_NOT_APPLY),
        ("unparsable_patch", TrialStatus.DOES_NOT_APPLY),
        ("partial_scan", TrialStatus.PARTIAL),
        ("no_rules", TrialStatus.SCORED),
    ],
)
def test_unscored_patch_has_status_and_reason(outputs: Outputs, status: str, read_as: TrialStatus) -> None:
    folder = outputs.add_trial()
    write_json(folder / "evaluation/scores.json", make_scores(status=status, reason="because", ifr=None))
    (record,) = read_outputs(outputs.root).records
    assert (record.scores.status, record.scores.reason, record.scores.ifr) == (read_as, "because", None)


def test_scores_of_earlier_format_are_not_read(outputs: Outputs) -> None:
    folder = outputs.add_trial()
    scores = make_scores(why="a reason", codetaste="0.5.0")
    for key in ("format", "reason", "codetaste_version"):
        del scores[key]
    write_json(folder / "evaluation/scores.json", scores)
    reading = read_outputs(outputs.root)
    (record,) = reading.records
    why = "scores.json has format 1, this codetaste reads format 4: evaluate it again"
    assert (record.scores.status, record.scores.reason) == (TrialStatus.NOT_SCORED, f"its {why}")
    assert record.scores.ifr is None
    assert [str(problem).rpartition("/")[2] for problem in reading.problems] == [
        why.replace(" has", ": has", 1)
    ]


@pytest.mark.parametrize(
    ("size", "read_as"), [(0, TrialStatus.DOES_NOT_APPLY), (300_000_000, TrialStatus.NOT_SCORED)]
)
def test_patch_too_large_to_read_is_identified_by_size(
    outputs: Outputs, size: int, read_as: TrialStatus
) -> None:
    folder = outputs.add_trial()
    fields = {"patch_sha256": "", "patch_bytes": size or (folder / "prediction.diff").stat().st_size}
    write_json(folder / "evaluation/scores.json", make_scores(status="too_large", **fields))
    (record,) = read_outputs(outputs.root).records
    assert record.scores.status is read_as


def test_each_attempt_is_a_trial(outputs: Outputs) -> None:
    first = outputs.add_trial()
    outputs.add_null()
    outputs.add_trial("a/attempt-2", identity="a", rules=(4, 4, 0, 6))
    reading = read_outputs(outputs.root)
    found = [(r.agent, r.attempt, r.scores.ifr) for r in reading.records if not r.pseudo]
    assert found == [("a", 1, 0.7), ("a", 2, 1.0)]
    second = next(record for record in reading.records if record.attempt == 2)
    assert second.folder == first / "attempt-2"
    assert second.published is None


def test_trial_without_evaluation_has_status_and_reason(outputs: Outputs) -> None:
    no_patch = outputs.add_trial(
        "none", metadata={"finish_reason": "error", "additional": {"error": "no credit"}}
    )
    (no_patch / "prediction.diff").unlink()
    empty = outputs.add_trial("empty", patch=b"", metadata={"finish_reason": "timeout"})
    waiting = outputs.add_trial("waiting")
    refused = outputs.add_trial("refused")
    (refused / "evaluation/rule_output.txt").write_text("…\nerror: patch failed: a.py:3\n")
    for folder in (no_patch, empty, waiting, refused):
        (folder / "evaluation/evaluation_result.json").unlink()
    found = {r.agent: (r.scores.status, r.scores.reason) for r in read_outputs(outputs.root).records}
    assert found["none"] == (TrialStatus.FAILED, "it left no patch (no credit)")
    assert found["empty"] == (TrialStatus.FAILED, "it left an empty patch (timeout)")
    assert found["waiting"][0] is TrialStatus.NOT_SCORED
    assert found["refused"][0] is TrialStatus.DOES_NOT_APPLY


def test_planned_trials_without_folder_are_counted(outputs: Outputs) -> None:
    outputs.add_trial("a", metadata={"additional": {"codetaste_version": "0.6.0"}})
    outputs.add_null()
    run = outputs.root.parent
    key = f"infer/a/open/{{}}/{ID}/{{}}"
    session = {"event": "session", "pid": 1, "host": "h", "limits": [None] * 4}
    journal: list[dict[str, Any]] = [{"event": "journal", "format": 2}, session]

    def job(key: str, status: str = "", cause: str = "", attempts: int = 1) -> None:
        journal.append({"event": "job", "key": key, "title": "", "lane": "", "needs": [], "path": []})
        journal.extend([{"event": "started", "key": key, "attempt": 1}] * attempts)
        if status:
            ended = {"event": "ended", "key": key, "fingerprint": "f", "status": status, "error": "because"}
            journal.append({**ended, "cause": cause})

    job(key.format("direct", "execute"), "done")
    job(key.format("plan", "plan"), "failed", "model")
    job(key.format("plan", "execute"), "skipped")
    job(key.format("direct", "attempt-2/execute"), "failed", "refused")
    job(key.format("direct", "attempt-3/execute"))
    job("infer/b/instructed/direct/other__one-01234567/execute", "budget_exceeded", "budget", attempts=0)
    text = "".join(json.dumps(line, sort_keys=True) + "\n" for line in journal)
    (run / "journal.jsonl").write_text(text + '{"event":"ended","key":"infer/a/torn')
    records = [record for record in read_outputs(run).records if not record.pseudo]
    found = {(r.agent, r.mode, r.attempt): (r.scores.status, r.scores.reason) for r in records}
    assert found == {
        ("a", "direct", 1): (TrialStatus.SCORED, ""),
        ("a", "plan", 1): (TrialStatus.FAILED, "because"),
        ("a", "direct", 2): (TrialStatus.REFUSED, "because"),
        ("a", "direct", 3): (TrialStatus.NOT_SCORED, "it has not ended (running)"),
        ("b", "direct", 1): (TrialStatus.REFUSED, "because"),
    }
    assert {r.metadata.model for r in records if r.agent == "a"} == {"sonnet"}
    assert {r.repository for r in records if r.agent == "a"} == {"/".join(PATH.split("/")[:2])}
    assert next(r for r in records if r.agent == "b").repository == "other/one"


def test_different_versions_and_rules_are_reported(outputs: Outputs, tmp_path: Path) -> None:
    folder = outputs.add_trial()
    write_json(folder / "evaluation/scores.json", make_scores())
    other = Outputs(tmp_path / "other" / "outputs")
    folder = other.add_trial()
    write_json(
        folder / "evaluation/scores.json",
        make_scores(engine="opengrep 1.31.0", rules_sha256={"positive": "cc"}),
    )
    readings = [read_outputs(each.root) for each in (outputs, other)]
    assert not any(reading.problems for reading in readings)
    together = merge_records(readings)
    assert len(together.records) == 2
    programs, rules = together.problems
    assert programs.kind is rules.kind is ProblemKind.VERSIONS
    assert "opengrep 1.30.0 (1)" in programs.text
    assert ID in rules.text


def test_unknown_layout_raises_and_empty_outputs_are_a_problem(tmp_path: Path) -> None:
    for root in (tmp_path / "none", tmp_path):
        with pytest.raises(ConfigError):
            read_outputs(root)
    (tmp_path / "outputs").mkdir()
    (problem,) = read_outputs(tmp_path).problems
    assert problem.kind is ProblemKind.INSTANCES
