"""Limits changed during a run are applied, invalid ones are refused, and a resume applies them again."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark, Workspace


@contextmanager
def running(workspace: Workspace, *args: str) -> Iterator[subprocess.Popen[str]]:
    """Start a run and wait until two passes are running or queued."""
    process = workspace.start("--json", "--set", "discover.max_turns=500", *args)
    try:
        tiny_benchmark.wait_for_progress(process, workspace.out, 6)
        yield process
    finally:
        if process.poll() is None:
            tiny_benchmark.kill(process)


def status(workspace: Workspace) -> Any:
    return workspace.cli("status", "r", "--json").json


def job_states(workspace: Workspace) -> list[str]:
    return sorted(job["state"] for job in status(workspace)["jobs"] if job["key"].startswith("discover"))


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.heavy
def test_raised_and_lowered_job_and_permit_limits_apply_at_once(tmp_path: Path, alpha: TinyBenchmark) -> None:
    models = {
        "m": f'provider = "scripted"\nmodel = "{tiny_benchmark.MODELS}:lingering"\nmax_concurrency = 1\n'
    }
    workspace = alpha.make_workspace(tmp_path, models, run="concurrency = 1", discover="")
    with running(workspace):
        assert job_states(workspace) == ["queued", "running"]
        changed = workspace.cli("limit", "r", "--jobs", "5", "--json")
        assert changed.code == 0
        assert changed.json["applied"] is True
        assert changed.json["limits"]["run.concurrency"] == {"value": 5, "configured": 1}
        wait_until(lambda: job_states(workspace) == ["running", "running"])
        wait_until(
            lambda: status(workspace)["concurrency"]["model m"] == {"limit": 1, "in_use": 1, "waiting": 1}
        )
        assert "in force in process" in workspace.cli("limit", "r", "--model", "m=2").out
        wait_until(
            lambda: status(workspace)["concurrency"]["model m"] == {"limit": 2, "in_use": 2, "waiting": 0}
        )
        assert workspace.cli("limit", "r", "--sandboxes", "1", "--jobs", "1").code == 0
        at_once = status(workspace)["concurrency"]
        # Running jobs continue; no new job starts.
        for resource in ("jobs", "sandbox"):
            assert at_once[resource] == {"limit": 1, "in_use": 2, "waiting": 0}
    notes = [line["text"] for line in workspace.journal() if line["event"] == "note" and not line["key"]]
    assert "run.concurrency is 5 now, was 1" in notes
    assert "models.m.max_concurrency is 2 now, was 1" in notes


def test_budget_below_spent_amount_refuses_later_calls(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "lingering"})
    with running(workspace) as process:
        wait_until(lambda: any(line["event"] == "settled" for line in workspace.journal()))
        assert workspace.cli("limit", "r", "--budget-usd", "0.001").code == 0
        result = tiny_benchmark.wait_for_result(process, 200)
    assert {job["status"] for job in result.json["jobs"]} == {"budget_exceeded"}
    lines = workspace.journal()
    (lowered,) = [number for number, line in enumerate(lines) if line["event"] == "limits"]
    assert lines[lowered]["limits"][0] == "0.001"
    assert not [line for line in lines[lowered:] if line["event"] == "reserved"]
    assert "run.budget_usd is $0.0010 now, was $2.00" in result.err
    # Settled costs remain, and calls in flight are finished and counted.
    assert Decimal(result.json["money"]["settled_usd"]) > Decimal("0.001")
    assert result.json["money"]["unknown_usd"] == "0"


def test_equal_amount_in_another_notation_is_applied(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "lingering"})
    with running(workspace):
        for amount in ("8", "8.00"):
            assert workspace.cli("limit", "r", "--budget-usd", amount, "--json").json["applied"] is True


@pytest.mark.heavy
def test_job_waiting_for_budget_continues_when_raised(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "slow_to_begin"}, run="budget_usd = 0.11")
    process = workspace.start("--json")
    try:
        wait_until(lambda: any(line.get("reason") == "budget" for line in workspace.journal()))
        assert workspace.cli("limit", "r", "--budget-usd", "5").code == 0
        events = [line["event"] for line in workspace.journal() if line["event"] in {"reserved", "settled"}]
        assert events == ["reserved", "reserved"]  # the first has no reply yet
        result = tiny_benchmark.wait_for_result(process, 200)
    finally:
        if process.poll() is None:
            tiny_benchmark.kill(process)
    assert {job["status"] for job in result.json["jobs"]} == {"done"}


@pytest.fixture
def finished_run(tmp_path: Path, alpha: TinyBenchmark) -> Workspace:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    assert workspace.run().code == 0
    return workspace


@pytest.mark.heavy
def test_invalid_limits_are_reported_one_per_line_and_not_applied(finished_run: Workspace) -> None:
    bad = ["--budget-usd", "-1", "--time-limit", "soon", "--jobs", "0", "--sandboxes", "2.5"]
    result = finished_run.cli("limit", "r", *bad, "--model", "q=2", "--model", "m", "--model", "m=x")
    assert result.code == 2
    assert result.out == ""
    for line, word in zip(
        result.err.splitlines(),
        ("has no model 'q'", "--model m:", "--budget-usd", "--time-limit", "--jobs", "--sandboxes", "m: 'x'"),
        strict=True,
    ):
        assert word in line
    assert not (finished_run.out / "limits.json").exists()
    assert finished_run.cli("limit", "nope", "--jobs", "2").code == 2
    for option in ("--budget-usd", "--time-limit", "--jobs", "--sandboxes", "--model"):
        empty = finished_run.cli("limit", "r", option, "")
        assert (empty.code, len(empty.err.splitlines())) == (2, 1), option
        assert option in empty.err


@pytest.mark.heavy
def test_limits_without_process_apply_until_config_is_newer(finished_run: Workspace) -> None:
    result = finished_run.cli("limit", "r", "--budget-usd", "3.5", "--jobs", "2", "--time-limit", "2h")
    assert "no process is running it: these apply to the next session" in result.out
    assert "$3.50 (the config says $2.00)" in result.out
    again = finished_run.run("--json")
    assert again.json["money"]["limit_usd"] == "3.5"
    assert "run.budget_usd: $3.50 by `codetaste limit`; the config says $2.00" in again.err
    assert json.loads((finished_run.out / "config.json").read_text())["run"]["budget_usd"] == "2.0"
    newer = finished_run.run("--json", "--set", "run.budget_usd=2.5")
    assert newer.json["money"]["limit_usd"] == "2.5"
    assert "run.budget_usd: set by `codetaste limit`, but overridden by the newer config" in newer.err
    # The overridden limit does not apply again with the older config; the other limits still do.
    assert finished_run.run("--json").json["money"]["limit_usd"] == "2.0"
    assert json.loads((finished_run.out / "limits.json").read_text()).keys() == {
        "run.concurrency",
        "run.time_limit",
    }
    assert finished_run.cli("limit", "r", "--reset").code == 0
    assert not (finished_run.out / "limits.json").exists()
    assert "by `codetaste limit`" not in finished_run.run().err


@pytest.mark.heavy
def test_budget_changed_before_kill_applies_in_next_session(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "lingering"})
    with running(workspace):
        assert workspace.cli("limit", "r", "--budget-usd", "0.15").code == 0
    result = workspace.run("--json")
    assert result.json["money"]["limit_usd"] == "0.15"
    assert Decimal(result.json["money"]["settled_usd"]) <= Decimal("0.15")
    (workspace.out / "limits.json").unlink()
    assert workspace.run("--json", "--dry-run").json["worst_case_usd"] == "1.0"
    assert workspace.run("--json").json["money"]["limit_usd"] == "2.0"


@pytest.mark.heavy
def test_damaged_limits_file_is_reported_once_and_ignored(tmp_path: Path, alpha: TinyBenchmark) -> None:
    script = f'provider = "scripted"\nmodel = "{tiny_benchmark.MODELS}:lingering"\n'
    price = "price = { input = 0.003, output = 0.015 }\n"  # no budget ends the run, however slow the machine
    workspace = alpha.make_workspace(tmp_path, {"m": script + price})
    texts = ["{", '{"run.budget_usd": {"value": "-3", "replaces": "2.0"}}', "[]"]
    with running(workspace):
        for number, text in enumerate(texts, 1):
            (workspace.out / "limits.json").write_text(text)
            wait_until(
                lambda n=number: (
                    str(workspace.journal()).count("`codetaste limit RUN --reset` discards it") == n
                )
            )  # type: ignore[misc]
        assert workspace.cli("limit", "r").code == 2
        assert status(workspace)["money"]["limit_usd"] == "2.0"
        assert job_states(workspace) == ["running", "running"]
    result = workspace.run()
    assert result.code == 2
    assert "limits.json: not written by `codetaste limit`" in result.err
    # The command that the message names repairs the file.
    assert workspace.cli("limit", "r", "--reset", "--jobs", "2").code == 0
    assert "2 (the config says 64)" in workspace.cli("limit", "r").out


@pytest.mark.heavy
def test_models_sharing_a_limiter_show_smallest_limit(tmp_path: Path, alpha: TinyBenchmark) -> None:
    unreachable = 'provider = "openai-chat"\nmodel = "x"\nbase_url = "http://127.0.0.1:9/v1"\n'
    price = "price = { input = 1, output = 1 }\n"
    models = {name: f"{unreachable}{price}max_concurrency = {most}\n" for name, most in (("m", 8), ("n", 3))}
    workspace = alpha.make_workspace(tmp_path, models)
    process = workspace.start()
    try:
        wait_until(lambda: "model n" in status(workspace)["concurrency"] if workspace.journal() else False)
        at_once = status(workspace)["concurrency"]
        assert (at_once["model m"]["limit"], at_once["model n"]["limit"]) == (3, 3)
        assert workspace.cli("limit", "r", "--model", "n=2").code == 0
        assert status(workspace)["concurrency"]["model m"]["limit"] == 2
    finally:
        tiny_benchmark.kill(process)
