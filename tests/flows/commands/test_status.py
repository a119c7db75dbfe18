"""The status of live, killed and finished runs in another process, retries by cause, and logs."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.llm.provider import server as provider

KEY = "sk-ant-not-a-real-key-0123456789"


def read_status(workspace: Workspace, *more: str) -> Any:
    return workspace.cli("status", "r", "--json", *more).json


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read_logs(workspace: Workspace) -> dict[str, list[dict[str, Any]]]:
    root = workspace.out / "logs"
    return {
        str(path.relative_to(root)).removesuffix(".jsonl"): [
            json.loads(line) for line in path.read_text("ascii").splitlines()
        ]
        for path in root.rglob("*.jsonl")
    }


def test_status_follows_live_run_and_killed_calls_are_unknown(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "slow_to_begin"}, discover="")
    process = workspace.start()
    try:
        wait_until(lambda: sum(line["event"] == "reserved" for line in workspace.journal()) == 2)
        status = read_status(workspace)
        assert f"process {process.pid} " in status["owner"]
        assert status["models"]["m"]["calls"]["in_flight"] == 2
        assert float(status["models"]["m"]["reserved_usd"]) > 0
        assert status["concurrency"]["model m"] == {"limit": 16, "in_use": 2, "waiting": 0}
        assert status["concurrency"]["jobs"] == {"limit": 64, "in_use": 2, "waiting": 0}
        assert status["concurrency"]["sandbox"] == {"limit": 8, "in_use": 2, "waiting": 0}
        assert status["models"]["m"]["price_source"] == "config"
        assert status["limits"]["run.budget_usd"] == "2.0"
        text = workspace.cli("status", "r").out
        assert "in use      jobs 2 of 64 · sandbox 2 of 8 · model m 2 of 16" in text
        wait_until(lambda: sum(len(lines) for lines in read_logs(workspace).values()) >= 6)
    finally:
        tiny_benchmark.kill(process)
    after = read_status(workspace)
    assert after["owner"] is None
    assert after["concurrency"] == {}
    assert after["models"]["m"]["calls"] == {"settled": 0, "unknown": 2, "in_flight": 0, "released": 0}
    assert after["models"]["m"]["unknown_usd"] == status["models"]["m"]["reserved_usd"]
    assert Counter(job["state"] for job in after["jobs"]) == {"interrupted": 2, "done": 1}
    # At most the last lines of the logs are missing.
    log = read_logs(workspace)[alpha.key("m", "additive")]
    assert [line["event"] for line in log][:2] == ["started", "call_sent"]


@pytest.mark.heavy
def test_watched_status_is_redrawn_on_terminal_until_run_ends(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "long"}, discover="")
    process = workspace.start()
    main, sub = pty.openpty()
    try:
        tiny_benchmark.wait_for_progress(process, workspace.out, 3)
        piped = workspace._popen([sys.executable, "-m", "codetaste", "status", "r", "--watch", "--json"])
        watching = subprocess.Popen(
            [sys.executable, "-m", "codetaste", "status", "r", "--watch"],
            cwd=workspace.folder,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "150", "LINES": "40"},
            stdin=subprocess.DEVNULL,
            stdout=sub,
            stderr=sub,
        )
        os.close(sub)
        seen = b""
        while True:
            try:
                data = os.read(main, 65536)
            except OSError:
                break
            if not data:
                break
            seen += data
        assert watching.wait(200) == 0
        assert process.wait(200) == 0
        process.communicate()
    finally:
        os.close(main)
        if process.poll() is None:
            tiny_benchmark.kill(process)
    text = seen.decode()
    assert "Traceback" not in text
    assert text.count("running: process") >= 3
    assert "2 running" in text
    assert text.rindex("not running") > text.rindex("running: process")
    assert "jobs        3: 3 done" in text
    # Without a terminal it waits for the end of the run and prints the final status.
    result = tiny_benchmark.wait_for_result(piped, 200)
    assert {job["state"] for job in result.json["jobs"]} == {"done"}


def test_status_of_finished_run_names_products_and_logs(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = uninterrupted_run
    status = read_status(workspace)
    assert status["products"] == [str(Path("runs/r/discover/m"))]
    assert "products    runs/r/discover/m" in workspace.cli("status", "r").out
    (job,) = read_status(workspace, "--job", "*/additive")["jobs"]
    assert len(job["calls"]) == 6
    assert all(call["state"] == "settled" for call in job["calls"])
    assert [str(workspace.out / "logs" / f"{job['key']}.jsonl"), str(workspace.out / "transcripts")] == [
        str(workspace.folder / job["files"][0]),
        str(workspace.folder / job["files"][1])[: len(str(workspace.out / "transcripts"))],
    ]
    tokens = status["models"]["m"]["tokens"]
    assert tokens["input"] > 0
    assert tokens["output"] > 0


def test_job_log_has_calls_and_tools_without_texts(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, result = uninterrupted_run
    log = read_logs(workspace)[alpha.key("m", "additive")]
    counts = Counter(line["event"] for line in log)
    assert (counts["call_sent"], counts["call_answered"], counts["tool_called"]) == (6, 6, 6)
    assert [log[0]["event"], log[-1]["event"]] == ["started", "finished"]
    assert log[-1]["status"] == "done"
    assert log[-1]["settled_usd"] == result.jobs[alpha.key("m", "additive")]["money"]["settled_usd"]
    assert next(line["tool"] for line in log if line["event"] == "tool_called") == "bash_explore"
    text = json.dumps(log)
    for words in ("step 1", "Rename fetch_old", "fetch_new(...)"):
        assert words not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_stopped_run_leaves_complete_logs(tmp_path: Path, alpha: TinyBenchmark, number: int) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "long"})
    process = workspace.start()
    # A call that is stopped between its reservation and its request has no call_failed event.
    wait_until(
        lambda: (
            sum(log.read_text("ascii").count('"call_sent"') for log in workspace.out.rglob("logs/**/*.jsonl"))
            == 2
        )
    )
    process.send_signal(number)
    assert tiny_benchmark.wait_for_result(process, 200).code == 130
    logs = read_logs(workspace)
    log = logs[alpha.key("m", "additive")]
    assert [line["event"] for line in log[-2:]] == ["call_failed", "finished"]
    assert (log[-2]["cause"], log[-1]["status"]) == ("cancelled", "cancelled")
    assert [line["event"] for line in logs["run"]] == ["draining"]


@pytest.mark.heavy
def test_retries_are_counted_by_cause_and_model_and_logged(tmp_path: Path, alpha: TinyBenchmark) -> None:
    with provider.serving() as flaky:
        refusals = [provider.status(529), provider.status(500), provider.reset]
        flaky.handlers.extend([*refusals, provider.status(429, retry_after="0"), provider.status(500)])
        flaky.default = provider.status(401)
        table = (
            f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{flaky.url}"\n'
            f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
        )
        workspace = alpha.make_workspace(tmp_path, {"good": "quick", "flaky": table}, run="budget_usd = 20.0")
        workspace.env["FAKE_KEY"] = KEY
        result = workspace.run("--json")
    assert result.code == 1
    status = read_status(workspace)
    assert status["models"]["good"]["retries"] == {}
    retries = Counter(status["models"]["flaky"]["retries"])
    assert sum(retries.values()) == 5
    assert retries["rate_limit"] == 1
    assert status["retries"] == dict(retries)
    by_job: Counter[str] = Counter()
    for job in status["jobs"]:
        by_job.update(job["retries"])
    assert by_job == retries
    assert {job["cause"] for job in status["jobs"] if job["model"] == "flaky"} == {"setup"}
    assert "retries" in workspace.cli("status", "r").out
    logged: Counter[str] = Counter()
    for key, lines in read_logs(workspace).items():
        logged.update(line["cause"] for line in lines if line["event"] == "call_retrying")
        assert KEY not in json.dumps(lines), key
    assert logged == retries


def test_unwritable_logs_do_not_fail_run(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    workspace.out.mkdir(parents=True)
    (workspace.out / "logs").write_text("in the way")
    result = workspace.run("--json")
    assert result.code == 0
    assert result.err.count("logs cannot be written, the run continues") == 1


def test_status_of_damaged_journal_is_one_line(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"})
    workspace.out.mkdir(parents=True)
    (workspace.out / "journal.jsonl").write_text("nonsense\nmore\n")
    result = workspace.cli("status", "r", "--watch")
    assert (result.code, len(result.err.splitlines())) == (1, 1)
    assert "journal.jsonl, line 1: not a journal line" in result.err
