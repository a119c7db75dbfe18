"""All tracks and modes end to end, in bubblewrap, with scripted agents: outputs, costs and hidden data."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import pytest

from codetaste.evaluation.trials.read import read_outputs
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import (
    ALL,
    apply_prediction,
    make_trial_workspace,
    output_folder,
    published_cost,
    read_metadata,
    read_products,
)


@pytest.fixture(scope="session")
def sandboxes(bubblewrap: Path, tools: None) -> None:
    """Skip where bubblewrap is missing."""


@pytest.fixture(scope="module")
def all_modes(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark, sandboxes: None
) -> tuple[Workspace, CommandResult]:
    """An uninterrupted run of all tracks and modes."""
    workspace = make_trial_workspace(tmp_path_factory.mktemp("compared"), alpha, ALL)
    return workspace, workspace.run("--json")


def test_prediction_of_every_trial_applies_to_base(
    tmp_path: Path, all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, result = all_modes
    assert result.code == 0, result.err
    assert [job["status"] for job in result.json["jobs"]] == ["done"] * 4
    for number, track in enumerate(ALL):
        folder = output_folder(workspace, alpha, track)
        files = apply_prediction(alpha, folder, tmp_path / str(number))
        assert "fetch_old" not in files["pack/one.py"] + files["pack/two.py"] + files["pack/store.py"]
        assert files["pack/made.py"] == "made\n"
        assert "new file mode 100755" in (folder / "prediction.diff").read_text()
        metadata = read_metadata(folder)
        assert (metadata["finish_reason"], metadata["description_type"], metadata["mode"]) == (
            "success",
            *track.split("/"),
        )
        assert metadata["additional"]["patch_files"] == 4
        assert metadata["additional"]["sandbox"] == "bubblewrap"


def test_written_or_selected_plan_is_executed(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    planned, chosen = (output_folder(workspace, alpha, f"open/{mode}") for mode in ("plan", "multiplan"))
    assert (
        planned / "refactoring_plan.md"
    ).read_text() == "# Plan 7\nUse marker-7.\n## Changes\nRename fetch_old.\n## Why\nÜbersicht.\n"
    assert "+class Store:  # marker-7" in (planned / "prediction.diff").read_text()
    assert "+class Store:  # marker-2" in (chosen / "prediction.diff").read_text()
    assert read_metadata(chosen)["additional"]["selected_plan"] == 2
    assert [
        f"Plan {number}" in (chosen / f"refactoring_plans/refactoring_plan{number}.md").read_text()
        for number in range(5)
    ] == [True] * 5


def test_trial_cost_is_sum_of_its_calls(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, result = all_modes
    for track in ALL:
        metadata = read_metadata(output_folder(workspace, alpha, track))
        ledgers = [*workspace.ledger("m"), *workspace.ledger("judge")]
        of_trial = [line for line in ledgers if line["call"].startswith(f"infer/a/{track}/")]
        billed = sum(float(line["cost_usd"]) for line in of_trial)
        assert published_cost(output_folder(workspace, alpha, track)) == pytest.approx(billed)
        assert float(metadata["additional"]["trial_usd"]) == pytest.approx(billed)
        assert metadata["additional"]["unknown_usd"] == "0"
        assert metadata["additional"]["tokens"]["input"] == sum(line["usage"]["input"] for line in of_trial)
        line = result.jobs[f"infer/a/{track}/{alpha.row.id}"]
        assert float(line["money"]["settled_usd"]) == pytest.approx(billed)


def test_report_and_published_analysis_have_one_cost_and_the_steps_times(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    records = {
        f"{each.track}/{each.mode}": each.metadata for each in read_outputs(workspace.out / "outputs").records
    }
    assert set(records) == set(ALL)
    for track, metadata in records.items():
        folder = output_folder(workspace, alpha, track)
        assert metadata.cost_usd == metadata.known_cost_usd == pytest.approx(published_cost(folder))
        steps = read_metadata(folder)["additional"]["steps"]
        runs = [*steps.get("plan", {}).get("attempts", []), *(steps.get("judge"), steps["execute"])]
        times = [map(datetime.fromisoformat, (run["start_time"], run["finish_time"])) for run in runs if run]
        worked_s = sum(((end - start).total_seconds() for start, end in times), 0.0)
        assert metadata.time_s == pytest.approx(worked_s, abs=0.002)


def test_logs_and_metadata_of_steps_are_beside_patch(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    folder = output_folder(workspace, alpha, "open/multiplan")
    for name, transcript in (("multiplan", "plan.plan-attempt-1"), ("inference", "execute")):
        log = folder / f"{name}.out"
        assert log.read_bytes() == (workspace.out / f"transcripts/{trial}/{transcript}.jsonl").read_bytes()
        assert log.stat().st_nlink == 2, "it takes space once"
    plan = json.loads((folder / "multiplan_generation_metadata.json").read_text())
    assert (plan["finish_reason"], plan["description_type"], plan["mode"]) == ("success", "open", "multiplan")
    choice = json.loads((folder / "multiplan_metadata.json").read_text())
    assert (choice["finish_reason"], choice["plans_generated"], choice["selected_plan_index"]) == (
        *("success", 5),
        2,
    )
    (bill,) = [line["usage"] for line in workspace.ledger("judge")]
    tokens = choice["judge_input_tokens"], choice["judge_output_tokens"]
    assert tokens == (bill["input"] + bill.get("cache_read", 0) + bill.get("cache_write", 0), bill["output"])
    assert "secret-reasoning" in choice["judge_reasoning"]
    assert (folder / "judge.out").read_text() == choice["judge_reasoning"]


def test_outputs_have_only_published_layout(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    usual = {"agent_config.json", "inference_metadata.json", "inference.out", "prediction.diff"}
    plans = {f"refactoring_plans/refactoring_plan{number}.md" for number in range(5)}
    planned = {"refactoring_plan.md", "plan_metadata.json", "plan.out"}
    chosen = {"multiplan_generation_metadata.json", "multiplan_metadata.json", "multiplan.out", "judge.out"}
    expected = {
        f"{track}/{alpha.row.path}/a/{name}"
        for track in ALL
        for name in usual
        | (planned if track == "open/plan" else set())
        | (plans | chosen if track == "open/multiplan" else set())
    }
    assert set(read_products(workspace)) == expected
    config = json.loads((output_folder(workspace, alpha) / "agent_config.json").read_text())
    assert config["id"] == "a"
    assert {"name", "version", "provider", "additional"} <= config["agent"].keys()
    assert {"name", "provider", "additional"} <= config["model"].keys()


def test_plan_judge_and_execute_jobs_share_one_budget(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    jobs = {line["key"]: line for line in workspace.journal() if line["event"] == "job"}
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    steps = [f"{trial}/{step}" for step in ("plan", "judge", "execute")]
    assert [jobs[key]["needs"][-1:] for key in steps] == [[f"sources/{alpha.row.id}"], [steps[0]], [steps[1]]]
    node = ["infer", f"a/open/multiplan/{alpha.row.id}"]
    assert all(jobs[key]["path"] == [*node, key] for key in steps)
    assert "resources" not in jobs[steps[1]]


def test_judge_reply_is_hidden_from_agents(
    all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    record = workspace.out / "transcripts" / f"{trial}/judge.jsonl"
    assert "secret-reasoning" in record.read_text()
    for file in [
        *(workspace.out / "outputs").rglob("*"),
        workspace.out / "transcripts" / f"{trial}/execute.jsonl",
    ]:
        of_judge = file.name in {"judge.out", "multiplan_metadata.json"}
        assert not file.is_file() or (b"secret-reasoning" in file.read_bytes()) is of_judge, file


def test_finished_run_is_read_and_deleted_outputs_are_restored(
    tmp_path: Path, all_modes: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = all_modes
    before, bought = read_products(workspace), len(workspace.ledger("m"))
    names = ("prediction.diff", "inference_metadata.json", "refactoring_plans/refactoring_plan3.md")
    for name in (*names, "judge.out", "multiplan_metadata.json", "inference.out"):
        (output_folder(workspace, alpha, "open/multiplan") / name).unlink()
    result = workspace.run("--json")
    assert result.code == 0
    assert all(job["resumed"] for job in result.json["jobs"])
    assert len(workspace.ledger("m")) == bought
    assert read_products(workspace) == before


@pytest.mark.heavy
def test_only_and_rerun_repeat_single_steps(tmp_path: Path, alpha: TinyBenchmark, sandboxes: None) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/plan",))
    first = workspace.run("--json", "--only", "*/plan")
    assert [job["key"] for job in first.json["jobs"]] == [f"infer/a/open/plan/{alpha.row.id}/plan"]
    assert not (workspace.out / "outputs").exists()
    planned = len(workspace.ledger("m"))
    assert planned == 3
    assert workspace.run("--json").code == 0
    whole = len(workspace.ledger("m"))
    stale = output_folder(workspace, alpha, "open/plan") / "judge.out"
    stale.write_text("of an earlier result")
    assert workspace.run("--json", "--rerun", "--only", "*/execute").code == 0
    assert not stale.exists()
    assert len(workspace.ledger("m")) == whole + (whole - planned)


def test_later_attempts_have_folders_below_first(
    tmp_path: Path, alpha: TinyBenchmark, sandboxes: None
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, track="attempts = 3")
    result = workspace.run("--json")
    assert result.code == 0, result.err
    first = output_folder(workspace, alpha)
    assert [
        read_metadata(folder)["additional"]["attempt"]
        for folder in (first, first / "attempt-2", first / "attempt-3")
    ] == [1, 2, 3]
    assert f"infer/a/open/direct/{alpha.row.id}/attempt-3" in result.jobs


def test_reply_without_tool_call_finishes_trial(
    tmp_path: Path, alpha: TinyBenchmark, sandboxes: None
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="in_words")
    assert workspace.run("--json").code == 0
    metadata = read_metadata(output_folder(workspace, alpha))
    assert (metadata["finish_reason"], metadata["additional"]["turns"]) == ("success", 5)


@pytest.mark.heavy
def test_one_run_discovers_rules_and_scores_trials(
    tmp_path: Path, alpha: TinyBenchmark, sandboxes: None
) -> None:
    model = (
        f'provider = "scripted"\nmodel = "{tiny_benchmark.MODELS}:quick"\nprice = {tiny_benchmark.PRICE}\n'
    )
    script = f'[[models]]\nid = "rules"\n{model}'
    flows = '[discover]\nmodels = ["rules"]\nbudget_usd = 1.0\n[evaluate]\nrules = "discover/rules"\n'
    workspace = make_trial_workspace(tmp_path, alpha, more=f"{script}\n{flows}")
    result = workspace.run("--json")
    assert result.code == 0, result.err
    assert len(result.json["jobs"]) == 3 + 3
    scored = json.loads((output_folder(workspace, alpha) / "evaluation/scores.json").read_text())
    assert scored["status"] == "scored"
    assert scored["positive_rules"] > 0 < scored["negative_rules"]
    assert len(workspace.rules()) == 2
    assert read_metadata(output_folder(workspace, alpha))["finish_reason"] == "success"
    assert [line["key"] for line in workspace.journal() if line["event"] == "started"].count(
        f"sources/{alpha.row.id}"
    ) == 1
    shown = workspace.run()
    assert "rules discovered by rules, scripted: " in shown.out
    assert "predictions: runs/r/outputs" in shown.out
    assert "success, 5 turns, 4 files changed, patch of" in shown.out


SECRETS = (
    "INSTRUCTED-SECRET",
    "RULE-SECRET",
    "GOLDEN-SECRET",
    "secret-reasoning",
    "fetch_new(key, strict)",
    "scores.json",
)


@pytest.mark.heavy
def test_open_track_sandbox_contains_no_hidden_files(tmp_path: Path, sandboxes: None) -> None:
    bench = tiny_benchmark.Bench(tmp_path)
    row = bench.add(golden={**tiny_benchmark.GOLDEN, "pack/golden.py": "GOLDEN-SECRET = 1\n"})
    assets = bench.root / "assets"
    (assets / "descriptions" / row.path / "description.md").write_text("INSTRUCTED-SECRET: rename all.\n")
    (assets / "descriptions" / row.path / "open_description.md").write_text("OPEN-AREA\n")
    (assets / "rules" / row.path).mkdir(parents=True)
    (assets / "rules" / row.path / "rules_positive.yml").write_text("rules: [] # RULE-SECRET\n")
    alpha = TinyBenchmark(bench, tmp_path / "cache")
    workspace = make_trial_workspace(tmp_path, alpha, ALL, coder="snooping", more="[evaluate]")
    result = workspace.run("--json")
    assert result.code == 1, result.err
    assert (output_folder(workspace, alpha, "open/direct") / "evaluation/scores.json").is_file()
    for track in ALL:
        seen = (output_folder(workspace, alpha, track) / "prediction.diff").read_text()
        assert "+HOME=/home/agent" in seen
        assert ("INSTRUCTED-SECRET" in seen) is (track == "instructed/direct")
        assert ("OPEN-AREA" in seen) is (track == "open/direct")
        assert ("marker-2" in seen) is (track == "open/multiplan")
        assert [secret for secret in SECRETS[1:] if secret in seen] == []
        assert row.base not in seen
        assert row.golden not in seen
    transcripts = [
        path for path in (workspace.out / "transcripts").rglob("*.jsonl") if path.name != "judge.jsonl"
    ]
    instructed = [path for path in transcripts if "INSTRUCTED-SECRET" in path.read_text()]
    assert {path.parent.parent.parent.name for path in instructed} == {"instructed"}
