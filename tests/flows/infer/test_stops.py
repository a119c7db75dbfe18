"""Trials stopped by budget, time limit, signal or failure; the patch so far is extracted."""

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
from support.flows.tiny_benchmark import TinyBenchmark, Workspace
from support.flows.trial_runs import (
    agent_table,
    apply_prediction,
    make_trial_workspace,
    output_folder,
    read_metadata,
)


@pytest.fixture(autouse=True)
def sandboxes(bubblewrap: Path, tools: None) -> None:
    """Skip where bubblewrap is missing."""


def test_trial_ended_by_budget_submits_patch_so_far(tmp_path: Path, alpha: TinyBenchmark) -> None:
    agent = "budget_usd = 0.05\nmax_output_tokens = 1024"
    workspace = make_trial_workspace(tmp_path, alpha, coder="endless", agent=agent)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "budget_exceeded"
    assert 0.02 < metadata["cost_usd"] <= 0.05
    files = apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    made = [name for name in files if name.startswith("pack/more")]
    assert 1 < len(made) == metadata["additional"]["patch_files"] == metadata["additional"]["tool_calls"]
    assert [job["status"] for job in result.json["jobs"]] == ["budget_exceeded"]
    accounts = tiny_benchmark.fold_journal(
        workspace.journal(), {(): Decimal(20), ("infer", f"a/open/direct/{alpha.row.id}"): Decimal("0.05")}
    )
    assert float(accounts.total("settled")) == pytest.approx(metadata["cost_usd"])


@pytest.mark.heavy
def test_trial_ended_by_budget_resumes_with_higher_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    agent = "budget_usd = 0.04\nmax_output_tokens = 1024"
    workspace = make_trial_workspace(tmp_path, alpha, coder="endless", agent=agent)
    assert workspace.run("--json").code == 1
    first = apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "first")
    assert workspace.run("--json", "--set", "agents.a.budget_usd=0.07").code == 1
    then = apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "then")
    assert first.items() < then.items()
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))


@pytest.mark.heavy
def test_trial_ended_by_time_limit_submits_patch_so_far(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="sleeper", agent="time_limit = '20s'")
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "timeout"
    assert (
        apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")["pack/slept.py"]
        == "slept = True\n"
    )
    assert [job["status"] for job in result.json["jobs"]] == ["timeout"]
    assert list(tiny_benchmark.leftover_processes("4321.5")) == []


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
def test_signal_keeps_patch_so_far_in_resumable_run(
    tmp_path: Path, alpha: TinyBenchmark, number: signal.Signals
) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="sleeper")
    process = workspace.start("--json")
    wait_for_command(process, "sleep 1234.5")
    process.send_signal(number)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert result.code == 130
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "unknown"
    assert metadata["additional"]["interruption"] == "stopped"
    assert (
        apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")["pack/slept.py"]
        == "slept = True\n"
    )
    assert list(tiny_benchmark.leftover_processes(str(tmp_path / "runs"))) == []
    assert not [path for path in (workspace.out / ".sandboxes").rglob("*") if path.is_file()]
    assert {job["status"] for job in result.json["jobs"]} == {"cancelled"}


def test_failing_model_leaves_patch_so_far_without_outcome(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="fails_later")
    result = workspace.run("--json")
    assert result.code == 1
    assert [job["status"] for job in result.json["jobs"]] == ["failed"]
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "unknown"
    assert "the scripted provider is gone" in metadata["additional"]["interruption"]
    assert "pack/before.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")


FORKS = """#!/bin/sh
[ "$1" = --version ] && echo 1 && exit
echo 'forked = True' >/testbed/pack/forked.py
for i in $(seq 300); do sleep 60 & done
wait
"""
NO_GROUPS = 'mount -t tmpfs none /sys/fs/cgroup && exec "$@"'
"""Without control groups codetaste counts the processes of a sandbox of root, not the kernel."""


def make_harness(folder: Path, script: str) -> Path:
    folder.mkdir()
    (folder / "agent.toml").write_text('protocol = "none"\nversions = ["1"]\ndefault = "1"\ninstall = ""\n')
    (folder / "run.sh").write_text(script)
    (folder / "run.sh").chmod(0o755)
    return folder


def count_starts(workspace: Workspace) -> int:
    keys = [line["key"] for line in workspace.journal() if line["event"] == "started"]
    return sum(key.endswith("/execute") for key in keys)


def find_first_process(pid: int) -> int:
    """Return the first process of the sandbox below ``pid``."""
    for one in tiny_benchmark.descendants(pid):
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        if status.partition("NSpid:")[2].splitlines()[0].split()[1:] == ["1"]:
            return one
    raise LookupError(pid)


def test_too_many_processes_end_trial_once_and_keep_patch(
    tmp_path: Path, alpha: TinyBenchmark, require: Callable[..., None]
) -> None:
    hidden = ["unshare", "--mount", "sh", "-c", NO_GROUPS, "sh"]
    mount = subprocess.run([*hidden, "true"], capture_output=True, check=False)
    require("unshare", ok=mount.returncode == 0, reason=f"cannot mount a tmpfs: {mount.stderr.decode()}")
    harness = make_harness(tmp_path / "forks", FORKS)
    workspace = make_trial_workspace(tmp_path / "place", alpha)
    text = workspace.config.read_text().replace("max = 4", "max = 4\nprocesses = 64")
    workspace.config.write_text(text.replace('harness = "codetaste"', f'harness = "{harness}"'))
    result = workspace.run("--json", before=hidden)
    found = read_metadata(output_folder(workspace, alpha))
    assert found["finish_reason"] == "execution_error"
    assert "too many processes" in found["additional"]["message"]
    assert "pack/forked.py" in apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    assert count_starts(workspace) == 1
    assert result.code == 1, result.err


KILLS = """#!/bin/sh
[ "$1" = --version ] && echo 1 && exit
echo 'killed = True' >/testbed/pack/killed.py
kill -9 -1
sleep 60
"""


@pytest.mark.parametrize("cli", [False, True], ids=["own-loop", "cli-agent"])
def test_agent_killing_its_sandbox_ends_trial_once_and_keeps_patch(
    tmp_path: Path, alpha: TinyBenchmark, cli: bool
) -> None:
    workspace = make_trial_workspace(tmp_path / "place", alpha, coder="killer")
    if cli:
        harness = make_harness(tmp_path / "kills", KILLS)
        text = workspace.config.read_text().replace('harness = "codetaste"', f'harness = "{harness}"')
        workspace.config.write_text(text)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "execution_error"
    assert metadata["additional"]["message"] == "the sandbox ended: a command in it killed its supervisor"
    files = apply_prediction(alpha, output_folder(workspace, alpha), tmp_path / "applied")
    assert files["pack/killed.py"] == "killed = True\n"
    assert count_starts(workspace) == 1
    assert [job["status"] for job in result.json["jobs"]] == ["done"]


def test_trial_whose_sandbox_is_killed_from_host_is_retried(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="sleeper", agent="time_limit = '60s'")
    process = workspace.start("--json")
    wait_for_command(process, "sleep 1234.5")
    os.kill(find_first_process(process.pid), signal.SIGKILL)
    deadline = time.monotonic() + 200
    while count_starts(workspace) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert tiny_benchmark.wait_for_result(process, 200).code == 130


@pytest.mark.heavy
def test_failed_trial_without_patch_has_record_until_success(
    tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path
) -> None:
    # It passes codetaste's check and then starts no sandbox: no fault of the agent's.
    weak = tmp_path / "bin" / "bwrap"
    weak.parent.mkdir()
    weak.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && exec echo bubblewrap 99.0.0\n'
        f'mkdir "$0.tried" || exit 1\nexec {bubblewrap} "$@"\n'
    )
    weak.chmod(0o755)
    workspace = make_trial_workspace(tmp_path, alpha)
    workspace.env["PATH"] = f"{weak.parent}:{os.environ['PATH']}"
    result = workspace.run("--json")
    assert (result.code, [job["status"] for job in result.json["jobs"]]) == (1, ["failed"]), result.err
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["finish_reason"] == "error"
    assert metadata["additional"]["message"] == result.json["jobs"][0]["error"]
    assert (output_folder(workspace, alpha) / "prediction.diff").read_bytes() == b""
    del workspace.env["PATH"]
    assert workspace.run("--json").code == 0
    assert read_metadata(output_folder(workspace, alpha))["finish_reason"] == "success"


def test_trial_beyond_run_budget_has_no_outcome(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, run="budget_usd = 0.000001")
    result = workspace.run("--json")
    assert result.code == 1
    assert [job["status"] for job in result.json["jobs"]] == ["budget_exceeded"]
    assert "not started" in result.json["jobs"][0]["error"]
    assert not (workspace.out / "outputs").exists()


def test_max_turns_ends_trial_and_submits_patch_so_far(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, coder="endless", agent="max_turns = 3")
    assert workspace.run("--json").code == 1
    metadata = read_metadata(output_folder(workspace, alpha))
    assert (metadata["finish_reason"], metadata["additional"]["message"]) == ("execution_error", "max_turns")
    assert metadata["additional"]["patch_files"] == metadata["additional"]["turns"] == 3
    calls = len(workspace.ledger("m"))
    config = workspace.config.read_text()
    workspace.config.write_text(config.replace("max_turns = 3", "max_turns = 5"))
    result = workspace.run("--json")
    assert result.code == 1
    (job,) = result.json["jobs"]
    assert (job["status"], job["ending"], job["ended_well"]) == ("done", "max turns", False)
    assert job["reason"] == "the limit of 5 turns was reached"
    metadata = read_metadata(output_folder(workspace, alpha))
    assert metadata["additional"]["patch_files"] == metadata["additional"]["turns"] == 5
    assert len(workspace.ledger("m")) == calls + 2


REPORTS_COST = """#!/bin/sh
[ "$1" = --version ] && echo 1 && exit
cat >/dev/null
echo 'more = 1' >pack/more.py
echo '{"type": "end", "spent": 0.75, "turns": 3}'
"""
REPORTING_MANIFEST = """protocol = "none"
versions = ["1"]
default = "1"
install = ""

[[end_events]]
when = { type = "end" }
outcome = "success"

[numbers]
cost_usd = "spent"
turns = "turns"
"""


def test_cost_of_an_agent_without_a_served_model_is_the_one_that_it_reports(
    tmp_path: Path, alpha: TinyBenchmark
) -> None:
    make_harness(tmp_path / "mine", REPORTS_COST)
    (tmp_path / "mine" / "agent.toml").write_text(REPORTING_MANIFEST)
    more = agent_table("cli", "m", harness="./mine") + "[evaluate]\n"
    workspace = make_trial_workspace(tmp_path, alpha, coder="coder", more=more)
    result = workspace.run("--json", "--only", "infer/cli/*")
    metadata = read_metadata(output_folder(workspace, alpha, agent="cli"))
    assert (result.code, metadata["finish_reason"]) == (0, "success"), result.err
    assert metadata["cost_usd"] == 0.75
    assert result.json["money"]["settled_usd"] == "0", "codetaste has paid nothing"
    rows = workspace.cli("report", "r", "--table", "effort", "--json").json["tables"][0]
    names = [column["name"] for column in rows["columns"]]
    (cells,) = [row["cells"] for row in rows["rows"]]
    assert cells[names.index("cost_usd")]["mean"] == 0.75
