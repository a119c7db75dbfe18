"""The commands run, status and tool call on real runs and instances."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import discovery_models, tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace


def call_tool(
    workspace: Workspace, alpha: TinyBenchmark, name: str, arguments: dict[str, Any], *more: str
) -> CommandResult:
    bench = ("--benchmark", str(alpha.bench.root), "--repos", str(alpha.bench.repos))
    return workspace.cli(
        "tool", "call", name, "--instance", "tiny*", *bench, "--args", json.dumps(arguments), *more
    )


@pytest.fixture
def empty_workspace(tmp_path: Path, alpha: TinyBenchmark) -> Workspace:
    return Workspace(tmp_path, alpha.cache, tmp_path)


def test_tool_call_runs_shell_command_on_base_code(empty_workspace: Workspace, alpha: TinyBenchmark) -> None:
    result = call_tool(empty_workspace, alpha, "bash_explore", {"command": "cat pack/one.py; exit 3"})
    assert result.code == 0
    assert "fetch_old('a')" in result.out
    assert "[exit code 3]" in result.out


def test_tool_call_registers_rules_in_either_direction(
    empty_workspace: Workspace, alpha: TinyBenchmark
) -> None:
    rules = {"rules": discovery_models.yaml(discovery_models.NEW[0], discovery_models.OLD[0])}
    for direction, accepted in (("additive", "calls-new"), ("reductive", "calls-old")):
        result = call_tool(empty_workspace, alpha, "register", rules, "--direction", direction, "--json")
        assert result.code == 0
        assert f"{accepted}: registered" in result.json["answer"]
        assert result.json["answer"].count(": registered") == 1
        facts = ["registered", "rejected", *(["names_in_base"] if direction == "reductive" else [])]
        assert [kind for kind, _ in result.json["facts"] if kind != "submitted"] == facts


def test_cli_tool_refusal_is_one_line_and_exit_code_1(
    empty_workspace: Workspace, alpha: TinyBenchmark
) -> None:
    result = call_tool(empty_workspace, alpha, "register", {"ruels": "x"})
    assert result.code == 1
    assert result.out == ""
    assert "bad arguments for register" in result.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["echo a\0b", "echo " + "x" * 100_000, "echo \ud800"])
def test_command_with_invalid_argument_is_refused(
    empty_workspace: Workspace, alpha: TinyBenchmark, command: str
) -> None:
    result = call_tool(empty_workspace, alpha, "bash_explore", {"command": command})
    assert result.code == 1
    assert "the tool refuses: " in result.err.splitlines()[-1]


def test_failing_user_tool_is_reported_without_traceback(
    empty_workspace: Workspace, alpha: TinyBenchmark
) -> None:
    (empty_workspace.folder / "mine.py").write_text(
        "from codetaste.agent.tool import tool\n\n@tool\nasync def look(context) -> str:\n"
        '    """Look."""\n    raise KeyError("gone")\n'
    )
    result = call_tool(empty_workspace, alpha, "mine.py:look", {})
    assert result.code == 1
    message = result.err.splitlines()[-1]
    assert (
        message.startswith("codetaste: the tool failed: KeyError: 'gone'")
        or "the tool failed: KeyError" in message
    )
    assert "mine.py:6" in message


def test_json_run_prints_only_json(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, result = uninterrupted_run
    assert set(result.jobs) == {alpha.key("m", "additive"), alpha.key("m", "reductive")}
    job = result.jobs[alpha.key("m", "additive")]
    assert job["status"] == "done"
    assert Decimal(job["money"]["settled_usd"]) > 0
    assert (workspace.folder / job["path"]).is_file()
    assert result.json["exit_code"] == 0


def test_status_of_finished_run_lists_jobs_and_model_costs(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, result = uninterrupted_run
    status = workspace.cli("status", "r", "--json").json
    assert status["owner"] is None
    assert {job["key"]: job["state"] for job in status["jobs"]} == {
        f"sources/{alpha.row.id}": "done",
        alpha.key("m", "additive"): "done",
        alpha.key("m", "reductive"): "done",
    }
    (spent,) = status["models"].values()
    assert Decimal(spent["settled_usd"]) == Decimal(result.json["money"]["settled_usd"])
    assert workspace.cli("status", str(workspace.out)).out.startswith(str(workspace.out))


def test_status_of_live_run_names_process_and_job_states(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    process = workspace.start()
    try:
        tiny_benchmark.wait_for_progress(process, workspace.out, 5)
        status = workspace.cli("status", "r", "--json").json
        assert str(process.pid) in status["owner"]
        assert {job["state"] for job in status["jobs"] if job["model"]} == {"running"}
    finally:
        tiny_benchmark.kill(process)
    after = workspace.cli("status", "r", "--json").json
    assert {job["state"] for job in after["jobs"] if job["model"]} == {"interrupted"}


def test_unknown_run_error_lists_existing_runs(
    uninterrupted_run: tuple[Workspace, CommandResult],
) -> None:
    workspace, _ = uninterrupted_run
    result = workspace.cli("status", "q")
    assert result.code == 2
    assert result.err.splitlines() == ["codetaste: q: no run there (runs here: r)"]


def test_only_suggests_the_nearest_job(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = uninterrupted_run
    result = workspace.run("--only", alpha.key("m", "aditive"))
    assert result.code == 2
    assert f"did you mean '{alpha.key('m', 'additive')}'" in result.err


def test_dry_run_shows_jobs_and_worst_case_and_starts_nothing(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick", "n": "quick"}, run="budget_usd = 1.5")
    result = workspace.run("--dry-run")
    assert result.code == 0
    assert f"new   {alpha.key('m', 'additive')}" in result.out
    assert "besides 1 job without a model (sources 1)" in result.out
    assert result.out.splitlines()[-1].endswith("they can cost $1.50 at most")
    assert result.err == ""
    planned = workspace.run("--dry-run", "--json", "--only", "*/additive").json
    assert [job["key"] for job in planned["jobs"] if job["model"]] == [
        alpha.key("m", "additive"),
        alpha.key("n", "additive"),
    ]
    assert not workspace.out.exists()


def test_config_without_flow_is_refused(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    text = workspace.config.read_text()
    workspace.config.write_text(text[: text.index("[discover]")])
    result = workspace.run()
    assert result.code == 2
    assert "[discover]" in result.err
