"""Runs watched from another process: live, killed and finished; their retries by cause; their logs."""

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
from support.flows.tiny_benchmark import Ended, Place, Tiny
from support.llm.provider import server as provider

KEY = "sk-ant-not-a-real-key-0123456789"


def status(where: Place, *more: str) -> Any:
    return where.cli("status", "r", "--json", *more).json


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 200
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def logs_of(where: Place) -> dict[str, list[dict[str, Any]]]:
    root = where.out / "logs"
    return {
        str(path.relative_to(root)).removesuffix(".jsonl"): [
            json.loads(line) for line in path.read_text("ascii").splitlines()
        ]
        for path in root.rglob("*.jsonl")
    }


def test_status_follows_live_run_and_killed_calls_are_unknown(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "slow_to_begin"}, discover="")
    process = where.start()
    try:
        until(lambda: sum(line["event"] == "reserved" for line in where.journal()) == 2)
        told = status(where)
        assert f"process {process.pid} " in told["owner"]
        assert told["models"]["m"]["calls"]["in_flight"] == 2
        assert float(told["models"]["m"]["in_flight_usd"]) > 0
        assert told["concurrency"]["model m"] == {"limit": 16, "in_use": 2, "waiting": 0}
        assert told["concurrency"]["jobs"] == {"limit": 64, "in_use": 2, "waiting": 0}
        assert told["concurrency"]["sandbox"] == {"limit": 8, "in_use": 2, "waiting": 0}
        assert told["models"]["m"]["price_source"] == "config"
        assert told["limits"]["run.budget_usd"] == "2.0"
        said = where.cli("status", "r").out
        assert "in use      jobs 2 of 64 · sandbox 2 of 8 · model m 2 of 16" in said
        until(lambda: sum(len(lines) for lines in logs_of(where).values()) >= 6)
    finally:
        tiny_benchmark.kill(process)
    after = status(where)
    assert after["owner"] is None
    assert after["concurrency"] == {}
    assert after["models"]["m"]["calls"] == {"settled": 0, "unknown": 2, "in_flight": 0, "released": 0}
    assert after["models"]["m"]["unknown_usd"] == told["models"]["m"]["in_flight_usd"]
    assert Counter(job["state"] for job in after["jobs"]) == {"interrupted": 2, "done": 1}
    # At most the last moments of the logs are missing.
    log = logs_of(where)[alpha.key("m", "additive")]
    assert [line["event"] for line in log][:2] == ["started", "call_sent"]


def test_a_watched_run_is_drawn_again_on_a_terminal_until_it_ends(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "long"}, discover="")
    process = where.start()
    main, sub = pty.openpty()
    try:
        tiny_benchmark.wait_for_progress(process, where.out, 3)
        piped = where._popen([sys.executable, "-m", "codetaste", "status", "r", "--watch", "--json"])
        watching = subprocess.Popen(
            [sys.executable, "-m", "codetaste", "status", "r", "--watch"],
            cwd=where.folder,
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
        assert watching.wait(20) == 0
        assert process.wait(60) == 0
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
    # Elsewhere than on a terminal it waits, and says how it ended.
    done = tiny_benchmark.finished(piped, 30)
    assert {job["state"] for job in done.json["jobs"]} == {"done"}


def test_a_finished_run_says_where_its_products_and_logs_lie(
    undisturbed: tuple[Place, Ended], alpha: Tiny
) -> None:
    where, _ = undisturbed
    told = status(where)
    assert told["products"] == [str(Path("runs/r/discover/m"))]
    assert "products    runs/r/discover/m" in where.cli("status", "r").out
    (job,) = status(where, "--job", "*/additive")["jobs"]
    assert len(job["calls"]) == 6
    assert all(call["state"] == "settled" for call in job["calls"])
    assert [str(where.out / "logs" / f"{job['key']}.jsonl"), str(where.out / "transcripts")] == [
        str(where.folder / job["files"][0]),
        str(where.folder / job["files"][1])[: len(str(where.out / "transcripts"))],
    ]
    tokens = told["models"]["m"]["tokens"]
    assert tokens["input"] > 0
    assert tokens["output"] > 0


def test_the_log_of_a_job_has_its_calls_and_tools_and_none_of_the_words(
    undisturbed: tuple[Place, Ended], alpha: Tiny
) -> None:
    where, done = undisturbed
    log = logs_of(where)[alpha.key("m", "additive")]
    counts = Counter(line["event"] for line in log)
    assert (counts["call_sent"], counts["call_answered"], counts["tool_called"]) == (6, 6, 6)
    assert [log[0]["event"], log[-1]["event"]] == ["started", "finished"]
    assert log[-1]["status"] == "done"
    assert log[-1]["settled_usd"] == done.jobs[alpha.key("m", "additive")]["money"]["settled_usd"]
    assert next(line["tool"] for line in log if line["event"] == "tool_called") == "bash_explore"
    text = json.dumps(log)
    for words in ("step 1", "Rename fetch_old", "fetch_new(...)"):
        assert words not in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_run_that_is_stopped_leaves_whole_logs(tmp_path: Path, alpha: Tiny, number: int) -> None:
    where = alpha.place(tmp_path, {"m": "long"})
    process = where.start()
    # A call that is stopped after its money was put aside, and before it was sent, is no call that failed.
    until(
        lambda: (
            sum(log.read_text("ascii").count('"call_sent"') for log in where.out.rglob("logs/**/*.jsonl"))
            == 2
        )
    )
    process.send_signal(number)
    assert tiny_benchmark.finished(process, 200).code == 130
    logs = logs_of(where)
    log = logs[alpha.key("m", "additive")]
    assert [line["event"] for line in log[-2:]] == ["call_failed", "finished"]
    assert (log[-2]["cause"], log[-1]["status"]) == ("cancelled", "cancelled")
    assert [line["event"] for line in logs["run"]] == ["draining"]


@pytest.mark.heavy
def test_retries_are_counted_by_cause_and_model_and_the_log_tells_each(tmp_path: Path, alpha: Tiny) -> None:
    with provider.serving() as flaky:
        refusals = [provider.status(529), provider.status(500), provider.reset]
        flaky.handlers.extend([*refusals, provider.status(429, retry_after="0"), provider.status(500)])
        flaky.default = provider.status(401)
        table = (
            f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{flaky.url}"\n'
            f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
        )
        where = alpha.place(tmp_path, {"good": "quick", "flaky": table}, run="budget_usd = 20.0")
        where.env["FAKE_KEY"] = KEY
        done = where.run("--json")
    assert done.code == 1
    told = status(where)
    assert told["models"]["good"]["retries"] == {}
    retries = Counter(told["models"]["flaky"]["retries"])
    assert sum(retries.values()) == 5
    assert retries["rate_limit"] == 1
    assert told["retries"] == dict(retries)
    by_job: Counter[str] = Counter()
    for job in told["jobs"]:
        by_job.update(job["retries"])
    assert by_job == retries
    assert {job["cause"] for job in told["jobs"] if job["model"] == "flaky"} == {"refused"}
    assert "retries" in where.cli("status", "r").out
    logged: Counter[str] = Counter()
    for key, lines in logs_of(where).items():
        logged.update(line["cause"] for line in lines if line["event"] == "call_retrying")
        assert KEY not in json.dumps(lines), key
    assert logged == retries


def test_logs_that_cannot_be_written_do_not_hurt_the_run(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "quick"})
    where.out.mkdir(parents=True)
    (where.out / "logs").write_text("in the way")
    done = where.run("--json")
    assert done.code == 0
    assert done.err.count("logs cannot be written, the run continues") == 1


def test_a_status_of_a_damaged_journal_is_one_line(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "quick"})
    where.out.mkdir(parents=True)
    (where.out / "journal.jsonl").write_text("nonsense\nmore\n")
    done = where.cli("status", "r", "--watch")
    assert (done.code, len(done.err.splitlines())) == (1, 1)
    assert "journal.jsonl, line 1: not a journal line" in done.err
