"""Trials that are stopped: by their budget, by time, by a signal; what the agent has done so far is kept."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Tiny
from support.flows.trial_runs import applied, metadata, output, trial_place


@pytest.fixture(autouse=True)
def boxes(bubblewrap: Path, tools: None) -> None:
    """Boxes on this machine."""


def test_trial_ended_by_budget_submits_patch_so_far(tmp_path: Path, alpha: Tiny) -> None:
    agent = "budget_usd = 0.05\nmax_output_tokens = 1024"
    where = trial_place(tmp_path, alpha, coder="endless", agent=agent)
    done = where.run("--json")
    assert done.code == 0, done.err
    told = metadata(output(where, alpha))
    assert told["finish_reason"] == "budget_exceeded"
    assert 0.02 < told["cost_usd"] <= 0.05
    files = applied(alpha, output(where, alpha), tmp_path / "applied")
    made = [name for name in files if name.startswith("pack/more")]
    assert 1 < len(made) == told["additional"]["patch_files"] == told["additional"]["tool_calls"]
    assert [job["status"] for job in done.json["jobs"]] == ["budget_exceeded"]
    books = tiny_benchmark.folded(
        where.journal(), {(): Decimal(20), ("infer", f"a/open/direct/{alpha.row.id}"): Decimal("0.05")}
    )
    assert float(books.total("settled")) == pytest.approx(told["cost_usd"])


def test_trial_ended_by_budget_resumes_with_higher_budget(tmp_path: Path, alpha: Tiny) -> None:
    agent = "budget_usd = 0.04\nmax_output_tokens = 1024"
    where = trial_place(tmp_path, alpha, coder="endless", agent=agent)
    assert where.run("--json").code == 0
    first = applied(alpha, output(where, alpha), tmp_path / "first")
    assert where.run("--json", "--set", "agents.a.budget_usd=0.07").code == 0
    then = applied(alpha, output(where, alpha), tmp_path / "then")
    assert first.items() < then.items()
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))


def test_a_time_limit_ends_a_trial_and_its_patch_so_far_is_the_prediction(
    tmp_path: Path, alpha: Tiny
) -> None:
    where = trial_place(tmp_path, alpha, coder="sleeper", agent="time_limit = '12s'")
    done = where.run("--json")
    assert done.code == 0, done.err
    told = metadata(output(where, alpha))
    assert told["finish_reason"] == "timeout"
    assert applied(alpha, output(where, alpha), tmp_path / "applied")["pack/slept.py"] == "slept = True\n"
    assert [job["status"] for job in done.json["jobs"]] == ["timeout"]
    assert list(tiny_benchmark.left_over("4321.5")) == []


def wait_for_command(process: subprocess.Popen[str], what: str) -> None:
    deadline = time.monotonic() + 200
    while True:
        below = []
        for pid in tiny_benchmark.descendants(process.pid):
            try:
                below.append(Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        if what in str(below):
            return
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_keeps_the_patch_so_far_beside_a_run_that_can_go_on(
    tmp_path: Path, alpha: Tiny, number: signal.Signals
) -> None:
    where = trial_place(tmp_path, alpha, coder="sleeper")
    process = where.start("--json")
    wait_for_command(process, "sleep 1234.5")
    process.send_signal(number)
    done = tiny_benchmark.finished(process, 200)
    assert done.code == 130
    told = metadata(output(where, alpha))
    assert told["finish_reason"] == "unknown"
    assert told["additional"]["interruption"] == "stopped"
    assert applied(alpha, output(where, alpha), tmp_path / "applied")["pack/slept.py"] == "slept = True\n"
    assert list(tiny_benchmark.left_over(str(tmp_path / "runs"))) == []
    assert not [path for path in (where.out / ".sandboxes").rglob("*") if path.is_file()]
    assert {job["status"] for job in done.json["jobs"]} == {"cancelled"}


def test_a_model_that_fails_leaves_the_patch_so_far_and_no_outcome(tmp_path: Path, alpha: Tiny) -> None:
    where = trial_place(tmp_path, alpha, coder="fails_later")
    done = where.run("--json")
    assert done.code == 1
    assert [job["status"] for job in done.json["jobs"]] == ["failed"]
    told = metadata(output(where, alpha))
    assert told["finish_reason"] == "unknown"
    assert "the scripted provider is gone" in told["additional"]["interruption"]
    assert "pack/before.py" in applied(alpha, output(where, alpha), tmp_path / "applied")


FORKS = """#!/bin/sh
[ "$1" = --version ] && echo 1 && exit
echo 'forked = True' >/testbed/pack/forked.py
for i in $(seq 300); do sleep 60 & done
wait
"""
NO_GROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
"""Without control groups the kernel counts no processes of a sandbox of root; codetaste does."""


def test_too_many_processes_end_trial_once_and_keep_patch(
    tmp_path: Path, alpha: Tiny, require: Callable[..., None]
) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", NO_GROUPS, "sh"]
    able = subprocess.run([*hidden, "true"], capture_output=True, check=False)
    require("unshare", ok=able.returncode == 0, reason=f"cannot mount a tmpfs: {able.stderr.decode()}")
    harness = tmp_path / "forks"
    harness.mkdir()
    (harness / "agent.toml").write_text('protocol = "none"\nversions = ["1"]\ndefault = "1"\ninstall = ""\n')
    (harness / "run.sh").write_text(FORKS)
    (harness / "run.sh").chmod(0o755)
    where = trial_place(tmp_path / "place", alpha)
    text = where.config.read_text().replace("max = 4", "max = 4\nprocesses = 64")
    where.config.write_text(text.replace('harness = "codetaste"', f'harness = "{harness}"'))
    done = where.run("--json", before=hidden)
    found = metadata(output(where, alpha))
    assert found["finish_reason"] == "execution_error"
    assert "too many processes" in found["additional"]["message"]
    assert "pack/forked.py" in applied(alpha, output(where, alpha), tmp_path / "applied")
    starts = [line["key"].rpartition("/")[2] for line in where.journal() if line["event"] == "started"]
    assert starts.count("execute") == 1
    assert done.code == 0, done.err


def test_failed_trial_without_patch_has_record_until_success(
    tmp_path: Path, alpha: Tiny, bubblewrap: Path
) -> None:
    # It passes its trial and then starts no box: as an engine that is gone, no fault of the agent's.
    weak = tmp_path / "bin" / "bwrap"
    weak.parent.mkdir()
    weak.write_text(f'#!/bin/sh\nmkdir "$0.tried" || exit 1\nexec {bubblewrap} "$@"\n')
    weak.chmod(0o755)
    where = trial_place(tmp_path, alpha)
    where.env["PATH"] = f"{weak.parent}:{os.environ['PATH']}"
    done = where.run("--json")
    assert (done.code, [job["status"] for job in done.json["jobs"]]) == (1, ["failed"]), done.err
    told = metadata(output(where, alpha))
    assert told["finish_reason"] == "error"
    assert told["additional"]["message"] == done.json["jobs"][0]["error"]
    assert (output(where, alpha) / "prediction.diff").read_bytes() == b""
    del where.env["PATH"]
    assert where.run("--json").code == 0
    assert metadata(output(where, alpha))["finish_reason"] == "success"


def test_trials_that_the_runs_budget_leaves_no_money_for_are_no_outcomes(tmp_path: Path, alpha: Tiny) -> None:
    where = trial_place(tmp_path, alpha, run="budget_usd = 0.000001")
    done = where.run("--json")
    assert done.code == 1
    assert [job["status"] for job in done.json["jobs"]] == ["budget_exceeded"]
    assert "not started" in done.json["jobs"][0]["error"]
    assert not (where.out / "outputs").exists()


def test_turns_are_bounded_and_the_patch_so_far_counts(tmp_path: Path, alpha: Tiny) -> None:
    where = trial_place(tmp_path, alpha, coder="endless", agent="max_turns = 3")
    assert where.run("--json").code == 0
    told = metadata(output(where, alpha))
    assert (told["finish_reason"], told["additional"]["message"]) == ("execution_error", "max_turns")
    assert told["additional"]["patch_files"] == told["additional"]["turns"] == 3
