"""Stopping a run by signals: in good order, with nothing left behind, and ready to go on."""

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
from support.flows.tiny_benchmark import Bench, Ended, Place, Tiny, place


def wait_for(true: Callable[[], bool], process: subprocess.Popen[str], timeout_s: float = 200) -> None:
    deadline = time.monotonic() + timeout_s
    while not true():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


def commands_below(pid: int) -> dict[int, str]:
    found = {}
    for child in tiny_benchmark.descendants(pid):
        try:
            found[child] = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def alive(pids: set[int]) -> set[int]:
    """Those of ``pids`` that run: a zombie of somebody else's does not."""
    running = set()
    for pid in pids:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
                running.add(pid)
        except OSError:
            continue
    return running


def ended_within(process: subprocess.Popen[str], timeout_s: float) -> Ended:
    return tiny_benchmark.finished(process, timeout_s)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
@pytest.mark.parametrize("engine", ["bubblewrap", "landlock"])
def test_signal_in_shell_command_exits_130_without_processes(
    tmp_path: Path, alpha: Tiny, number: signal.Signals, engine: str
) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    process = where.start("--json", "--set", f"sandbox.engine={engine}")
    wait_for(lambda: str(commands_below(process.pid)).count("sleep 4321.5") >= 2, process)
    below = set(commands_below(process.pid))
    process.send_signal(number)
    done = ended_within(process, 200)
    assert done.code == 130
    assert alive(below) == set()
    assert list(tiny_benchmark.left_over(str(tmp_path))) == []
    assert done.json["stop_reason"] == number.name
    assert {job["status"] for job in done.json["jobs"]} == {"cancelled"}
    assert "run the same command again to continue" in done.err


def test_a_signal_during_a_scan_leaves_no_rule_engine(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add(base={**tiny_benchmark.BASE, "slow.py": discovery_models.SLOW_FILE})
    where = place(tmp_path, bench, tmp_path / "cache", {"m": "hanging"})
    process = where.start()
    wait_for(lambda: "rules.json" in str(commands_below(process.pid)), process)
    time.sleep(0.5)
    below = set(commands_below(process.pid))
    process.send_signal(signal.SIGINT)
    done = ended_within(process, 200)
    assert done.code == 130
    assert alive(below) == set()


def test_stopped_run_resumes_without_buying_twice(
    tmp_path: Path, alpha: Tiny, undisturbed: tuple[Place, Ended]
) -> None:
    other, ended = undisturbed
    where = Place(tmp_path, other.cache, other.config)
    for steps in (8, 20):
        process = where.start("--json")
        tiny_benchmark.wait_for_progress(process, where.out, steps)
        process.send_signal(signal.SIGINT)
        assert ended_within(process, 200).code == 130
        tiny_benchmark.folded(where.journal(), {(): Decimal(2)})
    done = where.run("--json")
    assert done.code == 0
    assert where.rules() == other.rules()
    for amount in ("settled_usd", "unknown_usd"):
        assert Decimal(done.json["money"][amount]) == Decimal(ended.json["money"][amount])
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    tiny_benchmark.assert_no_finished_job_ran_twice(where.journal())


def test_a_second_signal_returns_at_once_and_still_cleans_up(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    process = where.start("--json")
    wait_for(lambda: str(commands_below(process.pid)).count("sleep 4321.5") >= 2, process)
    below = set(commands_below(process.pid))
    process.send_signal(signal.SIGINT)
    time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    done = ended_within(process, 200)
    assert done.code == 130
    assert {job["status"] for job in done.json["jobs"]} == {"cancelled"}, done.out
    assert alive(below) == set()


def test_a_signal_before_the_work_has_begun_is_no_error(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    process = where.start()
    assert process.stderr is not None
    assert "at most" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    done = ended_within(process, 200)
    assert done.code == 130


def test_a_killed_run_takes_its_shell_commands_with_it_under_bubblewrap(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    process = where.start("--set", "sandbox.engine=bubblewrap")
    wait_for(lambda: str(commands_below(process.pid)).count("sleep 4321.5") >= 2, process)
    below = set(commands_below(process.pid))
    tiny_benchmark.kill(process)
    deadline = time.monotonic() + 200
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(below) == set()


def test_temporary_files_of_killed_and_stopped_runs_are_bounded(tmp_path: Path, alpha: Tiny) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    where = alpha.place(tmp_path, {"m": "sleeper"})
    where.env["TMPDIR"] = str(temporary)
    process = where.start()
    wait_for(lambda: str(commands_below(process.pid)).count("sleep 4321.5") >= 2, process)
    process.send_signal(signal.SIGTERM)
    assert ended_within(process, 200).code == 130
    assert list(temporary.iterdir()) == []


def test_a_killed_run_takes_its_rule_engine_with_it(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    bench.add(base={**tiny_benchmark.BASE, "slow.py": discovery_models.SLOW_FILE})
    where = place(tmp_path, bench, tmp_path / "cache", {"m": "hanging"})
    process = where.start()
    wait_for(lambda: "rules.json" in str(commands_below(process.pid)), process)
    time.sleep(0.3)
    below = set(commands_below(process.pid))
    tiny_benchmark.kill(process)
    deadline = time.monotonic() + 200
    while alive(below) and time.monotonic() < deadline:
        time.sleep(0.05)
    left = alive(below)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == set()
