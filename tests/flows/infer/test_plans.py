"""Unusable plans and judgements are retried, then end the trial with their own finish reason."""

from __future__ import annotations

import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import make_trial_workspace, output_folder, published_cost, read_metadata

pytestmark = pytest.mark.heavy


@pytest.fixture(autouse=True)
def sandboxes(bubblewrap: Path, tools: None) -> None:
    """Skip where bubblewrap is missing."""


@pytest.mark.parametrize(
    ("mode", "coder", "problem"),
    [
        ("plan", "no_plan", "/output/refactoring_plan.md is missing"),
        ("plan", "empty_plan", "/output/refactoring_plan.md is empty"),
        ("plan", "linked_plan", "/output/refactoring_plan.md is not a regular file"),
        ("plan", "huge_plan", "/output/refactoring_plan.md is longer than 262,144 bytes"),
        ("multiplan", "no_plan", "refactoring_plan0.md is missing, and 4 more"),
        (
            "multiplan",
            "from_one",
            "refactoring_plan0.md is missing (found: refactoring_plans/refactoring_plan1.md",
        ),
    ],
)
def test_missing_or_unusable_plans_end_trial_with_reason(
    tmp_path: Path, alpha: TinyBenchmark, mode: str, coder: str, problem: str
) -> None:
    workspace = make_trial_workspace(
        tmp_path, alpha, (f"open/{mode}",), coder=coder, track="plan_attempts = 2"
    )
    result = workspace.run("--json")
    assert result.code == 1, result.err
    folder = output_folder(workspace, alpha, f"open/{mode}")
    metadata = read_metadata(folder)
    assert metadata["finish_reason"] == {"plan": "error_planmode", "multiplan": "error_multiplan"}[mode]
    assert problem in metadata["additional"]["message"]
    attempts = metadata["additional"]["steps"]["plan"]["attempts"]
    assert [problem in attempt["problem"] for attempt in attempts] == [True, True]
    assert (folder / "prediction.diff").read_bytes() == b""
    assert metadata["cost_usd"] == 0
    assert published_cost(folder) == float(metadata["additional"]["trial_usd"]) > 0
    assert [path.name for path in folder.glob("*.out")] == [f"{mode}.out"]
    assert "attempt 2 of 2 left no usable plan" in result.err
    assert workspace.ledger("judge") == []


def test_default_plan_attempts_are_three_in_one_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/plan",), coder="no_plan")
    assert workspace.run("--json").code == 1
    assert (
        len(
            read_metadata(output_folder(workspace, alpha, "open/plan"))["additional"]["steps"]["plan"][
                "attempts"
            ]
        )
        == 3
    )
    assert len(workspace.ledger("m")) == 3 * 2


def test_plan_with_invalid_utf8_is_read_with_replacements(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/plan",), coder="odd_bytes")
    assert workspace.run("--json").code == 0
    folder = output_folder(workspace, alpha, "open/plan")
    assert (folder / "refactoring_plan.md").read_text() == "# Plan\nmarker-3 �� \n"
    assert "marker-3" in (folder / "prediction.diff").read_text()


def test_filled_output_folder_gives_no_plan_and_bounded_memory(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(
        tmp_path, alpha, ("open/plan",), coder="flooding", track="plan_attempts = 1"
    )
    assert workspace.run("--json").code == 1
    metadata = read_metadata(output_folder(workspace, alpha, "open/plan"))
    assert metadata["finish_reason"] == "error_planmode"
    assert "within the first 67,108,864 bytes of /output" in metadata["additional"]["message"]


def test_plan_step_over_time_limit_is_failed_plan(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(
        tmp_path, alpha, ("open/plan",), coder="sleepy_planner", track="plan_time_limit = '2s'"
    )
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha, "open/plan"))
    assert metadata["finish_reason"] == "error_planmode"
    assert len(metadata["additional"]["steps"]["plan"]["attempts"]) == 1


def test_trial_over_time_limit_in_planning_is_timeout(tmp_path: Path, alpha: TinyBenchmark) -> None:
    agent = "budget_usd = 2.0\ntime_limit = '2s'"
    workspace = make_trial_workspace(tmp_path, alpha, ("open/plan",), coder="sleepy_planner", agent=agent)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    assert read_metadata(output_folder(workspace, alpha, "open/plan"))["finish_reason"] == "timeout"
    assert [job["status"] for job in result.json["jobs"]] == ["timeout"]


def test_trial_out_of_budget_in_planning_resumes_with_more(tmp_path: Path, alpha: TinyBenchmark) -> None:
    agent = "budget_usd = 0.05\nmax_turns = 60\nmax_output_tokens = 1024"
    workspace = make_trial_workspace(
        tmp_path, alpha, ("open/plan",), coder="endless_planner", agent=agent, more="[evaluate]"
    )
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha, "open/plan"))
    assert metadata["finish_reason"] == "budget_exceeded"
    assert (output_folder(workspace, alpha, "open/plan") / "prediction.diff").read_bytes() == b""
    # The empty patch is scored as no change.
    assert (
        json.loads((output_folder(workspace, alpha, "open/plan") / "evaluation/scores.json").read_text())[
            "files"
        ]
        == 0
    )
    assert result.jobs[f"evaluate/a/open/plan/{alpha.row.id}"]["status"] == "done"
    assert 0 < published_cost(output_folder(workspace, alpha, "open/plan")) <= 0.05
    bought = len(workspace.ledger("m"))
    again = workspace.run("--json", "--set", "agents.a.budget_usd=0.1")
    assert again.code == 1
    assert len(workspace.ledger("m")) > bought
    assert sum(Decimal(line["cost_usd"]) for line in workspace.ledger("m")) <= Decimal("0.1")


@pytest.mark.parametrize(
    ("judge", "requests", "reason"),
    [
        ("hesitant_judge", 2, "success"),
        ("undecided_judge", 3, "error_judge"),
        ("out_of_range_judge", 3, "error_judge"),
    ],
)
def test_judge_without_valid_choice_is_retried_then_given_up(
    tmp_path: Path, alpha: TinyBenchmark, judge: str, requests: int, reason: str
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/multiplan",), judge=judge)
    result = workspace.run("--json")
    assert result.code == (0 if reason == "success" else 1), result.err
    (job,) = result.json["jobs"]
    assert (job["ending"], job["ended_well"]) == (
        ("done", True) if reason == "success" else ("error judge", False)
    )
    folder = output_folder(workspace, alpha, "open/multiplan")
    metadata = read_metadata(folder)
    assert metadata["finish_reason"] == reason
    assert len(workspace.ledger("judge")) == requests
    billed = sum(float(line["cost_usd"]) for line in [*workspace.ledger("m"), *workspace.ledger("judge")])
    assert published_cost(folder) == pytest.approx(billed)
    choice = json.loads((folder / "multiplan_metadata.json").read_text())
    assert (choice["finish_reason"], choice["selected_plan_index"] is None) == (reason, reason != "success")
    answer = choice["judge_reasoning"].encode("utf-8", "backslashreplace")
    assert (folder / "judge.out").read_bytes() == answer != b""
    assert len(list((folder / "refactoring_plans").iterdir())) == 5
    assert ("marker-3" in (folder / "prediction.diff").read_text()) is (reason == "success")


def test_unaffordable_judgement_ends_trial_by_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    price = "{ input = 2000.0, output = 2000.0, cache_read = 2000.0, cache_write = 2000.0 }"
    workspace = make_trial_workspace(tmp_path, alpha, ("open/multiplan",))
    text = workspace.config.read_text()
    head, _, tail = text.rpartition("price = ")
    workspace.config.write_text(f"{head}price = {price}{tail[tail.index(chr(10)) :]}")
    assert workspace.config.read_text().count("2000.0") == 4, text
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha, "open/multiplan"))
    assert metadata["finish_reason"] == "budget_exceeded"
    assert workspace.ledger("judge") == []
    assert len(list((output_folder(workspace, alpha, "open/multiplan") / "refactoring_plans").iterdir())) == 5


CHEAP_OUTPUT = "{ input = 3.0, output = 0.3 }"
"""What a reply may cost at most is little, so that a budget can be used up almost to its end."""


@pytest.mark.heavy
def test_budgets_of_steps_and_of_the_trial(tmp_path: Path, alpha: TinyBenchmark) -> None:
    """A plan and its execution each fit into a budget that both together exceed."""

    def run(name: str, budget: Decimal, track: str = "") -> tuple[Workspace, CommandResult]:
        agent = f"max_output_tokens = 1024\nbudget_usd = {budget}"
        workspace = make_trial_workspace(tmp_path / name, alpha, ("open/plan",), agent=agent, track=track)
        text = workspace.config.read_text()
        workspace.config.write_text(text.replace(tiny_benchmark.PRICE, CHEAP_OUTPUT))
        return workspace, workspace.run("--json")

    def costs(workspace: Workspace) -> dict[str, Decimal]:
        found: defaultdict[str, Decimal] = defaultdict(Decimal)
        for line in workspace.ledger("m"):
            found["plan" if "/plan/plan-attempt" in line["call"] else "execute"] += Decimal(line["cost_usd"])
        return found

    free, result = run("free", Decimal(1))
    assert result.code == 0
    steps = costs(free)
    assert len(steps) == 2, free.ledger("m")[0]
    budget = (3 * max(steps.values()) + sum(steps.values())) / 4
    for track, code, reason in (("", 1, "budget_exceeded"), ("budgets = 'step'", 0, "success")):
        workspace, result = run(reason, budget, track)
        metadata = read_metadata(output_folder(workspace, alpha, "open/plan"))
        assert (result.code, metadata["finish_reason"]) == (code, reason), (steps, budget)
        assert (sum(costs(workspace).values()) > budget) is (reason == "success")
