"""A fault in one output folder is reported, and all other trials are read."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.evaluation.trials.read import read_outputs
from codetaste.evaluation.trials.records import ProblemKind, ReadProblem, TrialRecord, TrialStatus
from support.evaluation.published_outputs import (
    BASE,
    GOLDEN_HASH,
    PATH,
    Outputs,
    make_sarif,
    make_scores,
    write_json,
)

RESULT, METADATA = "evaluation/evaluation_result.json", "inference_metadata.json"
Damage = Callable[[Path], object]


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    outputs = Outputs(tmp_path / "checkout" / "outputs")
    outputs.add_null()
    outputs.add_trial("sound")
    return outputs


def read(
    outputs: Outputs, benchmark: Benchmark | None = None
) -> tuple[dict[str, TrialRecord], list[ReadProblem]]:
    """Read the outputs, check the sound trial, and return the records by agent and the problems."""
    found = read_outputs(outputs.root, benchmark)
    records = {record.agent: record for record in found.records}
    sound = records["sound"]
    assert (sound.scores.status, sound.scores.ifr, sound.scores.prec, sound.scores.passed) == (
        TrialStatus.SCORED,
        0.7,
        3 / 5,
        True,
    )
    for problem in found.problems:
        assert str(problem).isprintable()
        assert "sound/" not in problem.location
    return records, list(found.problems)


def cut(name: str) -> Damage:
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-5])


def edit(name: str, **changed: Any) -> Damage:
    return lambda folder: write_json(folder / name, json.loads((folder / name).read_text()) | changed)


def rules(**changed: Any) -> Damage:
    def damage(folder: Path) -> None:
        result = json.loads((folder / RESULT).read_text())
        write_json(folder / RESULT, result | {"agent_rule_metrics": result["agent_rule_metrics"] | changed})

    return damage


def remove(name: str) -> Damage:
    return lambda folder: (folder / name).unlink()


def pipe(folder: Path) -> None:
    (folder / METADATA).unlink()
    os.mkfifo(folder / METADATA)


def directory(folder: Path) -> None:
    (folder / METADATA).unlink()
    (folder / METADATA).mkdir()


SCORED, PARTIAL, UNREADABLE = TrialStatus.SCORED, TrialStatus.PARTIAL, TrialStatus.UNREADABLE
CASES: dict[str, tuple[Damage, TrialStatus, ProblemKind, str]] = {
    "truncated result": (cut(RESULT), UNREADABLE, ProblemKind.TRUNCATED, RESULT),
    "no object": (lambda f: (f / RESULT).write_text("[1]"), UNREADABLE, ProblemKind.LAYOUT, RESULT),
    "deep": (lambda f: (f / RESULT).write_text("[" * 99999), UNREADABLE, ProblemKind.TRUNCATED, RESULT),
    "no counts": (edit(RESULT, agent_rule_metrics=None), UNREADABLE, ProblemKind.LAYOUT, RESULT),
    "NaN count": (rules(total_positive_rules=float("nan")), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "huge count": (rules(total_positive_rules=10**400), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "negative count": (rules(total_positive_rules=-1), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "half a rule": (rules(total_positive_rules=4.5), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "true as a count": (rules(total_positive_rules=True), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "more than all match": (rules(positive_rules_matched=5), UNREADABLE, ProblemKind.NUMBER, RESULT),
    "null cost": (edit(METADATA, cost_usd=None), SCORED, ProblemKind.NUMBER, METADATA),
    "infinite cost": (edit(METADATA, cost_usd=float("inf")), SCORED, ProblemKind.NUMBER, METADATA),
    "negative cost": (edit(METADATA, cost_usd=-3), SCORED, ProblemKind.NUMBER, METADATA),
    "cost as text": (edit(METADATA, cost_usd="1"), SCORED, ProblemKind.NUMBER, METADATA),
    "ends first": (edit(METADATA, finish_time="2025-11-01T09:00:00Z"), SCORED, ProblemKind.NUMBER, METADATA),
    "other mode": (edit(METADATA, mode="plan"), SCORED, ProblemKind.LAYOUT, METADATA),
    "no metadata": (remove(METADATA), SCORED, ProblemKind.MISSING, METADATA),
    "NaN tests": (
        *(edit(RESULT, agent_test_metrics={"passed": float("nan"), "failed": 0, "total": 3}), SCORED),
        *(ProblemKind.NUMBER, RESULT),
    ),
    "a folder": (directory, SCORED, ProblemKind.UNREADABLE, METADATA),
    "a pipe": (pipe, SCORED, ProblemKind.UNREADABLE, METADATA),
    "no agent": (remove("agent_config.json"), SCORED, ProblemKind.MISSING, "agent_config.json"),
    "no patch": (remove("prediction.diff"), SCORED, ProblemKind.MISSING, "prediction.diff"),
    "truncated patch": (cut("prediction.diff"), SCORED, ProblemKind.TRUNCATED, "prediction.diff"),
    "truncated SARIF": (
        *(cut("evaluation/rules_positive.sarif"), SCORED),
        *(ProblemKind.TRUNCATED, "evaluation/rules_positive.sarif"),
    ),
    "other commit": (
        *(edit(RESULT, instance_metadata={"base_hash": "9" * 40}), TrialStatus.NOT_SCORED),
        *(ProblemKind.OTHER_COMMIT, RESULT),
    ),
    "scores of another patch": (
        *(lambda f: write_json(f / "evaluation/scores.json", make_scores(b"other")), TrialStatus.NOT_SCORED),
        *(ProblemKind.STALE, "evaluation/scores.json"),
    ),
    "scores of no format": (
        *(
            lambda f: write_json(f / "evaluation/scores.json", make_scores(format=["2"])),
            TrialStatus.NOT_SCORED,
        ),
        *(ProblemKind.FORMAT, "evaluation/scores.json"),
    ),
    "damaged activity": (
        *(lambda f: (f / "evaluation/activity.json").write_text("{"), SCORED),
        *(ProblemKind.TRUNCATED, "evaluation/activity.json"),
    ),
    "activity that is no count": (
        *(lambda f: write_json(f / "evaluation/activity.json", {"edits": -1}), SCORED),
        *(ProblemKind.NUMBER, "evaluation/activity.json"),
    ),
    "activity pipe": (
        *(lambda f: os.mkfifo(f / "evaluation/activity.json"), SCORED),
        *(ProblemKind.UNREADABLE, "evaluation/activity.json"),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fault_in_one_trial_names_file(outputs: Outputs, case: str) -> None:
    damage, status, kind, name = CASES[case]
    damage(outputs.add_trial("bad"))
    records, problems = read(outputs)
    assert records["bad"].scores.status is status
    assert [(p.kind, p.location) for p in problems] == [(kind, f"open/direct/{PATH}/bad/{name}")]


@pytest.mark.parametrize("fault", ["missing", "truncated"])
def test_missing_scan_is_no_measurement(outputs: Outputs, fault: str) -> None:
    """The published harness reads it as "no rule matches", so IFR⁻ is 1."""
    folder = outputs.add_trial("bad", rules=(3, 4, 0, 6))
    path = folder / "evaluation/rules_negative.sarif"
    if fault == "missing":
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:-3])
    record = read(outputs)[0]["bad"]
    assert (record.scores.status, record.scores.ifr, record.scores.ifr_minus) == (PARTIAL, None, None)
    assert record.scores.reason.startswith(f"rules_negative.sarif is {fault}")
    assert record.scores.reason.endswith("no match is no measurement")
    assert record.published is not None
    assert record.published.ifr_minus == 1.0


def test_deleted_sarif_files_preserve_counts(outputs: Outputs) -> None:
    folder = outputs.add_trial("bad", rules=(4, 4, 0, 6))
    for path in folder.glob("evaluation/*.sarif"):
        path.unlink()
    record = read(outputs)[0]["bad"]
    assert (record.scores.status, record.scores.ifr, record.scores.prec) == (SCORED, 1.0, None)


def test_patch_of_300_mb_is_reported_and_not_read(outputs: Outputs) -> None:
    folder = outputs.add_trial("bad")
    os.truncate(folder / "prediction.diff", 300_000_000)
    records, (problem,) = read(outputs)
    assert (records["bad"].scores.status, records["bad"].scores.ifr, records["bad"].scores.added) == (
        SCORED,
        0.7,
        None,
    )
    assert (problem.kind, problem.text) == (
        *(ProblemKind.SIZE, "has 300,000,000 bytes; more than 67,108,864 are not read"),
    )


def test_result_with_huge_line_range_is_rejected(outputs: Outputs) -> None:
    folder = outputs.add_trial("bad")
    (folder / "evaluation/rules_positive.sarif").write_bytes(make_sarif(("src/a.py", 1, 10**15)))
    records, (problem,) = read(outputs)
    assert (records["bad"].scores.prec, problem.kind) == (None, ProblemKind.NUMBER)


def test_links_are_followed_only_to_files_below_the_root(outputs: Outputs, tmp_path: Path) -> None:
    outside = tmp_path / "outside.json"
    outside.write_text("{}")
    out, within, folder = outputs.add_trial("out"), outputs.add_trial("within"), outputs.add_trial("folder")
    (out / METADATA).unlink()
    (out / METADATA).symlink_to(outside)
    (within / METADATA).unlink()
    (within / METADATA).symlink_to(outputs.root / "open/direct" / PATH / "sound" / METADATA)
    (folder / "evaluation").rename(tmp_path / "evaluation")
    (folder / "evaluation").symlink_to(tmp_path / "evaluation")
    (folder.parent / "linked").symlink_to(tmp_path)
    (folder.parent / "round").symlink_to("round")
    records, problems = read(outputs)
    assert records["within"].metadata.cost_usd == 1.25
    assert records["out"].metadata.cost_usd is None
    assert records["folder"].scores.ifr is None
    places = {Path(p.location).relative_to(f"open/direct/{PATH}").as_posix() for p in problems}
    assert places == {f"out/{METADATA}", f"folder/{RESULT}", "linked"}
    assert {p.kind for p in problems} == {ProblemKind.LINK}


@pytest.mark.parametrize("identity", ["org/model", "..", "<b>x</b>", "a\x1b[31m\nb", "x" * 500, "\ud800", ""])
def test_unusual_agent_id_is_one_line_and_reported(outputs: Outputs, identity: str) -> None:
    outputs.add_trial("odd", identity=identity)
    records, problems = read(outputs)
    (name,) = records.keys() - {"sound", "null_agent"}
    assert name.isprintable()
    assert len(name) <= 100
    if identity:
        assert [p.kind for p in problems] == [ProblemKind.NAME]
    else:
        assert name == "odd"


def test_damaged_baseline_runs_are_reported(outputs: Outputs) -> None:
    outputs.add_baselines((20, 1))
    file = outputs.root.parent / "baseline_results" / PATH / "golden_agent.jsonl"
    file.write_text(file.read_text() + '{"passed": 1\n')
    _, problems = read(outputs)
    assert [p.text for p in problems] == ["1 of 3 lines in golden_agent.jsonl are damaged"]


def test_agent_id_with_slash_is_read(outputs: Outputs) -> None:
    outputs.add_trial("org/model")
    records, problems = read(outputs)
    assert records["org/model"].scores.ifr == 0.7
    assert {p.kind for p in problems} == {ProblemKind.NAME}


def test_folders_of_unknown_layout_are_reported(outputs: Outputs) -> None:
    for name in ("open/turbo/o/r/01234567/a", "closed/direct", "open/direct/o/r/not-a-hash/a"):
        (outputs.root / name).mkdir(parents=True)
    (outputs.root / "__MACOSX/open").mkdir(parents=True)
    (outputs.root / ".cache").mkdir()
    _, problems = read(outputs)
    assert {p.kind for p in problems} == {ProblemKind.LAYOUT}
    assert {p.location for p in problems} == {"open/turbo", "closed", "open/direct/o/r/not-a-hash"}


def test_unknown_instances_are_excluded(outputs: Outputs) -> None:
    outputs.add_trial("bad", path="other/one/89abcdef")
    row = Instance("Made", "Up", BASE, GOLDEN_HASH, None, "api", "go")
    records, (problem,) = read(outputs, Benchmark(outputs.root.parent, (row,)))
    assert "bad" not in records
    assert (problem.kind, "other/one/89abcdef" in problem.text) == (ProblemKind.UNKNOWN_INSTANCE, True)


def test_evaluation_of_other_commits_is_not_scored(outputs: Outputs) -> None:
    row = Instance("Made", "Up", BASE, "e" * 40, None, "api", "go")
    found = read_outputs(outputs.root, Benchmark(outputs.root.parent, (row,)))
    assert {record.scores.status for record in found.records} == {TrialStatus.NOT_SCORED}
    assert {problem.kind for problem in found.problems} == {ProblemKind.OTHER_COMMIT}


def test_duplicate_trial_counts_once(outputs: Outputs) -> None:
    outputs.add_trial("sound-again", identity="sound", rules=(0, 4, 6, 6))
    records, (problem,) = read(outputs)
    assert len(records) == 2
    assert (problem.kind, problem.location) == (ProblemKind.DUPLICATE, f"open/direct/{PATH}/sound-again")


def test_damaged_journal_loses_only_trials_without_folders(outputs: Outputs) -> None:
    (outputs.root.parent / "journal.jsonl").write_text('{"event":"ended","key":"infer/a"}\n{"event":"job"]\n')
    found = read_outputs(outputs.root.parent)
    assert len(found.records) == 2
    assert [(p.kind, p.location) for p in found.problems] == [(ProblemKind.UNREADABLE, "journal.jsonl")]


FILES = (
    *("prediction.diff", "agent_config.json", METADATA, RESULT, "evaluation/scores.json"),
    *("evaluation/rules_positive.sarif", "evaluation/rules_negative.sarif", "evaluation/activity.json"),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(name=st.sampled_from(FILES), data=st.data())
def test_arbitrary_file_content_does_not_stop_reading(
    tmp_path_factory: pytest.TempPathFactory, name: str, data: st.DataObject
) -> None:
    outputs = Outputs(tmp_path_factory.mktemp("fuzz") / "outputs")
    outputs.add_null()
    outputs.add_trial("sound")
    folder = outputs.add_trial("bad")
    write_json(folder / "evaluation/scores.json", make_scores())
    old = (folder / name).read_bytes() if (folder / name).exists() else b"{}"
    if data.draw(st.booleans()) and old.startswith(b"{"):
        whole = json.loads(old)
        key = data.draw(st.sampled_from(sorted(whole) or ["x"]))
        (folder / name).write_text(json.dumps(whole | {key: data.draw(JSON)}))
    else:
        at = data.draw(st.integers(0, len(old)))
        (folder / name).write_bytes(old[:at] + data.draw(st.binary(max_size=5)) + old[at + 3 :])
    records, _ = read(outputs)
    assert len(records) == 3
