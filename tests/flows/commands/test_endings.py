"""How jobs ended: exit codes, marks and reasons in summary, status and logs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.flows.tiny_benchmark import PRICE, CommandResult, TinyBenchmark, Workspace

REASON = "the limit of 2 turns was reached"


@pytest.fixture(scope="module")
def cut_run(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark
) -> tuple[Workspace, CommandResult]:
    """A run whose only pass is ended by ``max_turns``."""
    workspace = alpha.make_workspace(tmp_path_factory.mktemp("cut"), {"m": "reply"})
    return workspace, workspace.run("--only", "*/additive", "--set", "discover.max_turns=2")


def run_again(workspace: Workspace, *args: str) -> CommandResult:
    return workspace.run("--only", "*/additive", "--set", "discover.max_turns=2", *args)


def test_summary_marks_it_with_its_reason_and_the_exit_code_is_one(
    cut_run: tuple[Workspace, CommandResult],
) -> None:
    _, result = cut_run
    assert result.code == 1
    first, endings, line, *_ = result.out.splitlines()
    assert first.startswith("r: 0 of 1 jobs ended well")
    assert endings == "endings: 1 max turns"
    assert line.startswith("  cut ")
    assert f"max turns: {REASON}; 2 rules (2 turns)" in line
    assert f"/additive: max turns, $0.0149: {REASON}" in result.err


def test_exit_zero_is_for_jobs_that_have_a_result(
    cut_run: tuple[Workspace, CommandResult], tmp_path: Path, alpha: TinyBenchmark
) -> None:
    workspace, _ = cut_run
    assert run_again(workspace).code == 1
    assert run_again(workspace, "--exit-zero").code == 0
    broken = alpha.make_workspace(tmp_path, {"m": "broken"})
    assert broken.run("--exit-zero").code == 1


def test_json_status_and_log_have_the_ending_and_the_reason(
    cut_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = cut_run
    again = run_again(workspace, "--json").json
    assert (again["endings"], again["exit_code"]) == ({"max turns": 1}, 1)
    wanted = {"ending": "max turns", "ended_well": False, "reason": REASON}
    (job,) = again["jobs"]
    assert wanted.items() <= job.items()
    key = alpha.key("m", "additive")
    jobs = {job["key"]: job for job in workspace.cli("status", "r", "--json").json["jobs"]}
    assert wanted.items() <= jobs[key].items()
    assert jobs[f"sources/{alpha.row.id}"]["ended_well"] is True
    shown = workspace.cli("status", "r").out
    assert "jobs        2: 1 max turns, 1 done" in shown
    (line,) = [line for line in shown.splitlines() if line.endswith(REASON)]
    assert line.startswith(f"  cut max turns       {key} · ")
    assert REASON in workspace.cli("status", "r", "--job", key).out.splitlines()[0]
    log = (workspace.out / "logs" / f"{key}.jsonl").read_text().splitlines()
    (finished,) = [json.loads(line) for line in log if json.loads(line)["event"] == "finished"]
    assert (finished["level"], finished["ending"], finished["reason"]) == ("warning", "max turns", REASON)


def test_raised_limit_ends_well(cut_run: tuple[Workspace, CommandResult], tmp_path: Path) -> None:
    workspace, _ = cut_run
    dry = workspace.run("--only", "*/additive", "--dry-run", "--json").json
    assert [job["work"] for job in dry["jobs"] if job["model"]] == ["cut"]
    result = workspace.run("--only", "*/additive")
    assert result.code == 0
    assert result.out.startswith("r: 1 of 1 jobs ended well")
    assert "endings:" not in result.out


HALF_WORKING = """
from codetaste.llm.messages import Message, Request, TextBlock, ToolCall


def reply(request: Request) -> Message:
    if "**additive**" in request.system:
        return Message("assistant", (TextBlock("I only talk."),))
    return Message("assistant", (ToolCall("c", "finish", {}),))
"""


def test_only_what_failed_is_run_again(tmp_path: Path, alpha: TinyBenchmark) -> None:
    (tmp_path / "half.py").write_text(HALF_WORKING)
    table = f'provider = "scripted"\nmodel = "half.py:reply"\nprice = {PRICE}\n'
    workspace = alpha.make_workspace(tmp_path, {"m": table})
    first = workspace.run("--json")
    assert first.code == 1
    additive, reductive = alpha.key("m", "additive"), alpha.key("m", "reductive")
    endings = {job["key"]: job["ending"] for job in first.json["jobs"]}
    assert endings == {additive: "no tool call", reductive: "done"}
    calls = len(workspace.ledger("m"))
    assert {job["resumed"] for job in workspace.run("--json").json["jobs"]} == {True}
    again = workspace.run("--json", "--rerun-failed")
    assert {job["key"]: job["resumed"] for job in again.json["jobs"]} == {additive: False, reductive: True}
    assert len(workspace.ledger("m")) == 2 * calls - 1
    only = workspace.run("--json", "--rerun-failed", "--only", "*/reductive")
    assert [job["resumed"] for job in only.json["jobs"]] == [True]
