"""Signals stop a run cleanly, without remaining processes or files, and the run resumes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import discovery_models, tiny_benchmark
from support.flows.tiny_benchmark import Bench, CommandResult, TinyBenchmark, Workspace, make_workspace

pytestmark = pytest.mark.heavy


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], timeout_s: float = 200) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def descendant_commands(pid: int) -> dict[int, str]:
    found = {}
    for child in tiny_benchmark.descendants(pid):
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def running_processes(pids: set[int]) -> set[int]:
    """Those of ``pids`` that are running, without zombies."""
    running = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                running.add(pid)
        except OSError:
            continue
    return running


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
def test_signal_in_shell_command_exits_130_without_processes(
    tmp_path: Path, alpha: TinyBenchmark, number: signal.Signals, engine: str
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    process = workspace.start("--json", "--set", f"sandbox.engine={engine}")
    wait_for(lambda: str(descendant_commands(process.pid)).count("sleep 4321.5") >= 2, process)
    descendants = set(descendant_commands(process.pid))
    process.send_signal(number)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130
    assert running_processes(descendants) == set()
    assert list(tiny_benchmark.leftover_processes(str(tmp_path))) == []
    assert result.json["stop_reason"] == number.name
    assert {job["status"] for job in result.json["jobs"]} == {"cancelled"}
    assert ": stopped while running" in result.err
    assert "run the same command again to continue" in result.err


def test_signal_during_scan_leaves_no_rule_engine(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add(base={**tiny_benchmark.BASE, "slow.py": discovery_models.SLOW_FILE})
    workspace = make_workspace(tmp_path, bench, tmp_path / "cache", {"m": "hanging"})
    process = workspace.start()
    wait_for(lambda: "rules.json" in str(descendant_commands(process.pid)), process)
    time.sleep(0.5)
    descendants = set(descendant_commands(process.pid))
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130
    assert running_processes(descendants) == set()


def test_stopped_run_resumes_without_buying_twice(
    tmp_path: Path, alpha: TinyBenchmark, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    uninterrupted, uninterrupted_result = uninterrupted_run
    workspace = Workspace(tmp_path, uninterrupted.cache, uninterrupted.config)
    for steps in (8, 20):
        process = workspace.start("--json")
        tiny_benchmark.wait_for_progress(process, workspace.out, steps)
        process.send_signal(signal.SIGINT)
        assert tiny_benchmark.wait_for_result(process, 200).code == 130
        tiny_benchmark.fold_journal(workspace.journal(), {(): Decimal(2)})
    result = workspace.run("--json")
    assert result.code == 0
    assert workspace.rules() == uninterrupted.rules()
    for amount in ("settled_usd", "unknown_usd"):
        assert Decimal(result.json["money"][amount]) == Decimal(uninterrupted_result.json["money"][amount])
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    tiny_benchmark.assert_no_finished_job_ran_twice(workspace.journal())


def test_second_signal_stops_run_and_cleans_up(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    process = workspace.start("--json")
    wait_for(lambda: str(descendant_commands(process.pid)).count("sleep 4321.5") >= 2, process)
    descendants = set(descendant_commands(process.pid))
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130
    assert {job["status"] for job in result.json["jobs"]} == {"cancelled"}, result.out
    assert running_processes(descendants) == set()


def test_signal_before_first_job_is_no_error(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    process = workspace.start()
    assert process.stderr is not None
    assert "at most" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130


def test_killed_run_leaves_no_shell_commands_in_bubblewrap(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    process = workspace.start("--set", "sandbox.engine=bubblewrap")
    wait_for(lambda: str(descendant_commands(process.pid)).count("sleep 4321.5") >= 2, process)
    descendants = set(descendant_commands(process.pid))
    tiny_benchmark.kill(process)
    deadline = time.monotonic() + 200
    while running_processes(descendants) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert running_processes(descendants) == set()


def test_stopped_run_leaves_no_temporary_files(tmp_path: Path, alpha: TinyBenchmark) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    workspace.env["TMPDIR"] = str(temporary)
    process = workspace.start()
    wait_for(lambda: str(descendant_commands(process.pid)).count("sleep 4321.5") >= 2, process)
    process.send_signal(signal.SIGTERM)
    assert tiny_benchmark.wait_for_result(process, 200).code == 130
    assert list(temporary.iterdir()) == []


def test_killed_run_leaves_no_rule_engine(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add(base={**tiny_benchmark.BASE, "slow.py": discovery_models.SLOW_FILE})
    workspace = make_workspace(tmp_path, bench, tmp_path / "cache", {"m": "hanging"})
    process = workspace.start()
    wait_for(lambda: "rules.json" in str(descendant_commands(process.pid)), process)
    time.sleep(0.3)
    descendants = set(descendant_commands(process.pid))
    tiny_benchmark.kill(process)
    deadline = time.monotonic() + 200
    while running_processes(descendants) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = running_processes(descendants)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == set()
