"""The three real CLI agents stopped within a task: by budget, by time limit, by Ctrl-C."""

from __future__ import annotations

import secrets
import signal
import subprocess
import time
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.cli_agent_models import LOOK
from support.flows.cli_agent_runs import (
    EXPENSIVE_PRICE,
    PROGRAMS,
    Config,
    ledger_lines,
    make_bench,
    trial_folder,
)
from support.flows.tiny_benchmark import Bench, CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import agent_table, apply_prediction, published_cost, read_metadata
from support.system import dockerd
from support.system.leak_check import Leaks

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(400)]

SMALL, LIMIT = "0.30", "25s"
TWO_EDITS = 3
"""Replies of a model up to its second edit; the first reads a file."""
DIRECT = "open/direct"


def has_both_edits(bench: Bench, folder: Path, into: Path, mark: str = "direct") -> bool:
    """Return whether the patch has both edits and nothing else."""
    files = apply_prediction(TinyBenchmark(bench, into), folder, into)
    rest = {name for name in files if files[name] != tiny_benchmark.BASE.get(name)} - {"NAME"}
    first = files["pack/store.py"].startswith(f"class Store:  # {mark}\n")
    return first and files.get("look.sh") == LOOK and rest == {"pack/store.py", "look.sh"}


@pytest.fixture(scope="module")
def stopped_run(
    tmp_path_factory: pytest.TempPathFactory, tools: None, agents_cache: Path
) -> tuple[Bench, Workspace, CommandResult]:
    """A run of each CLI agent with a small budget and with a short time limit, and of one without."""
    bench = make_bench(tmp_path_factory.mktemp("bench"), "stopped")
    config = Config(bench, 'engine = "bubblewrap"\nmax = 7')
    config.programs("restless", f"budget_usd = {SMALL}", "-poor", EXPENSIVE_PRICE)
    config.programs("stuck", f"time_limit = '{LIMIT}'", "-slow")
    config.program("codex", "coder")
    config.track(DIRECT)
    workspace = config.make_workspace(tmp_path_factory.mktemp("stopped"), agents_cache.parent)
    return bench, workspace, workspace.run("--json", timeout_s=300)


@pytest.mark.parametrize("program", PROGRAMS)
def test_cli_agent_over_budget_after_second_edit_keeps_both_edits(
    program: str, stopped_run: tuple[Bench, Workspace, CommandResult], tmp_path: Path
) -> None:
    bench, workspace, result = stopped_run
    agent, row = f"{program}-poor", bench.rows[0]
    folder = trial_folder(workspace, row, DIRECT, agent)
    metadata = read_metadata(folder)
    assert metadata["finish_reason"] == "budget_exceeded"
    assert metadata["additional"]["turns"] == TWO_EDITS
    assert has_both_edits(bench, folder, tmp_path / "applied")
    billed = sum(Decimal(line["cost_usd"]) for line in ledger_lines(workspace, f"infer/{agent}/"))
    assert Decimal("0.2") < billed <= Decimal(SMALL)
    assert metadata["cost_usd"] == pytest.approx(float(billed))
    limits = {("infer", f"{agent}/{DIRECT}/{row.id}"): Decimal(SMALL)}
    assert tiny_benchmark.fold_journal(workspace.journal(), limits).total("reserved", "unknown") == 0
    assert result.jobs[f"infer/{agent}/{DIRECT}/{row.id}"]["status"] == "budget_exceeded"


def test_reported_cost_mismatch_is_noted(stopped_run: tuple[Bench, Workspace, CommandResult]) -> None:
    bench, workspace, result = stopped_run
    metadata = read_metadata(trial_folder(workspace, bench.rows[0], DIRECT, "claude-code-poor"))
    work = metadata["additional"]["steps"]["execute"]
    assert abs(float(work["reported_cost_usd"]) / metadata["cost_usd"] - 1) > 0.01
    assert work["reported_cost_usd"] in work["cost_mismatch"]
    assert work["cost_mismatch"] in result.err


@pytest.mark.parametrize("program", PROGRAMS)
def test_cli_agent_time_limit_in_command_keeps_edits(
    program: str, stopped_run: tuple[Bench, Workspace, CommandResult], tmp_path: Path
) -> None:
    bench, workspace, result = stopped_run
    agent, row = f"{program}-slow", bench.rows[0]
    folder = trial_folder(workspace, row, DIRECT, agent)
    metadata = read_metadata(folder)
    assert metadata["finish_reason"] == "timeout"
    assert has_both_edits(bench, folder, tmp_path / "applied")
    assert metadata["additional"]["unknown_usd"] == "0"
    assert result.jobs[f"infer/{agent}/{DIRECT}/{row.id}"]["status"] == "timeout"


def test_other_trials_continue_and_no_processes_remain(
    stopped_run: tuple[Bench, Workspace, CommandResult],
) -> None:
    bench, workspace, result = stopped_run
    assert result.code == 1, "a trial did not end well"
    assert (
        read_metadata(trial_folder(workspace, bench.rows[0], DIRECT, "codex"))["finish_reason"] == "success"
    )
    assert list(tiny_benchmark.leftover_processes(str(workspace.folder))) == []
    assert not [path for path in (workspace.out / ".sandboxes").rglob("*") if path.is_file()]


def test_ctrl_c_keeps_edits_and_resume_repeats_no_plan(
    tmp_path: Path, tools: None, agents_cache: Path, nothing_left: Leaks
) -> None:
    bench = make_bench(tmp_path / "bench", "stopped")
    config = Config(bench, 'engine = "bubblewrap"\nmax = 3')
    config.programs("stuck_while")
    config.track("open/plan")
    workspace = config.make_workspace(tmp_path / "place", agents_cache.parent)
    (workspace.folder / "stuck").touch()
    process, mark = start_run(workspace, nothing_left)
    wait_for_commands(process, mark, len(PROGRAMS))
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert (result.code, stuck_commands(mark)) == (130, [])
    assert {job["status"] for job in result.json["jobs"]} == {"cancelled"}
    assert "run the same command again to continue" in result.err
    for program in PROGRAMS:
        folder = trial_folder(workspace, bench.rows[0], "open/plan", program)
        metadata = read_metadata(folder)
        assert (metadata["finish_reason"], metadata["additional"]["interruption"]) == (
            "unknown",
            "stopped",
        ), program
        assert has_both_edits(bench, folder, tmp_path / program, "marker-7")
    before = {program: plan_calls(workspace, bench, program) for program in PROGRAMS}
    (workspace.folder / "stuck").unlink()
    again = workspace.run("--json", timeout_s=200)
    assert again.code == 0, again.err
    for program in PROGRAMS:
        folder = trial_folder(workspace, bench.rows[0], "open/plan", program)
        metadata = read_metadata(folder)
        assert metadata["finish_reason"] == "success"
        assert has_both_edits(bench, folder, tmp_path / f"{program}-again", "marker-7")
        assert before[program] == plan_calls(workspace, bench, program) != []
        billed = sum(float(line["cost_usd"]) for line in ledger_lines(workspace, f"infer/{program}/"))
        assert published_cost(folder) == pytest.approx(billed), "the cost of the stopped attempt counts"
    starts = [line["key"].rpartition("/")[2] for line in workspace.journal() if line["event"] == "started"]
    assert (starts.count("plan"), starts.count("execute")) == (3, 6)
    for name in PROGRAMS.values():
        tiny_benchmark.assert_no_call_billed_twice(workspace.ledger(name))


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.system)])
def engine(request: pytest.FixtureRequest) -> dockerd.DockerEngine | None:
    """The Docker engine of the sandboxes; None for bubblewrap."""
    if request.param == "bubblewrap":
        return None
    request.getfixturevalue("lean_image")
    found: dockerd.DockerEngine = request.getfixturevalue("docker_engine")
    return found


def test_second_ctrl_c_leaves_no_processes_and_run_resumes(
    engine: dockerd.DockerEngine | None,
    tmp_path: Path,
    tools: None,
    agents_cache: Path,
    nothing_left: Leaks,
) -> None:
    sandbox = 'engine = "bubblewrap"'
    if engine is not None:
        nothing_left.watch(engine)
        sandbox = f'engine = "docker"\nsocket = "{engine.socket}"'
    bench = make_bench(tmp_path / "bench", "twice")
    config = Config(bench, sandbox)
    config.program("codex", "stuck_while")
    config.track(DIRECT)
    workspace = config.make_workspace(tmp_path / "place", agents_cache.parent)
    (workspace.folder / "stuck").touch()
    process, mark = start_run(workspace, nothing_left)
    wait_for_commands(process, mark, 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    result = tiny_benchmark.wait_for_result(process, 200)
    assert (result.code, stuck_commands(mark)) == (130, [])
    assert list(tiny_benchmark.leftover_processes(str(workspace.folder))) == []
    (workspace.folder / "stuck").unlink()
    assert workspace.run("--json", timeout_s=200).code == 0
    folder = trial_folder(workspace, bench.rows[0], DIRECT, "codex")
    assert read_metadata(folder)["finish_reason"] == "success"
    assert has_both_edits(bench, folder, tmp_path / "applied")
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("gpt-5.1-codex"))


def test_request_burst_is_billed_within_job_budget(tmp_path: Path, tools: None, agents_cache: Path) -> None:
    bench = make_bench(tmp_path / "bench", "burst")
    agent = tmp_path / "place" / "burst"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text(BURST_TOML)
    (agent / "run.sh").write_text(BURST_SH)
    (agent / "run.sh").chmod(0o755)
    (agent / "burst.mjs").write_text(BURST)
    config = Config(bench)
    config.model("m", "expensive_reply", EXPENSIVE_PRICE)
    config.tables.append(agent_table("b", "m", f"budget_usd = {SMALL}", "./burst"))
    config.track(DIRECT)
    workspace = config.make_workspace(tmp_path / "place", agents_cache.parent)
    result = workspace.run("--json")
    assert result.code == 1, result.err
    metadata = read_metadata(trial_folder(workspace, bench.rows[0], DIRECT, "b"))
    assert metadata["finish_reason"] == "budget_exceeded"
    billed = sum(Decimal(line["cost_usd"]) for line in workspace.ledger("m"))
    assert Decimal("0.2") < billed <= Decimal(SMALL)
    assert Decimal(metadata["additional"]["settled_usd"]) == billed
    limits = {("infer", f"b/{DIRECT}/{bench.rows[0].id}"): Decimal(SMALL)}
    assert tiny_benchmark.fold_journal(workspace.journal(), limits).total("settled") == billed


def test_cli_agents_beyond_run_budget_are_not_installed(tmp_path: Path, tools: None) -> None:
    bench = make_bench(tmp_path / "bench", "poor")
    config = Config(bench, run="budget_usd = 0.001")
    config.programs("coder")
    config.track(DIRECT)
    workspace = config.make_workspace(tmp_path / "place", tmp_path / "cache")
    result = workspace.run("--json")
    assert (result.code, {job["status"] for job in result.json["jobs"]}) == (1, {"budget_exceeded"})
    assert all("not started: needs at least" in job["error"] for job in result.json["jobs"])
    assert not (workspace.out / "outputs").exists(), "the trial has no outcome"
    assert not list((tmp_path / "cache").rglob("agents/*/installed.json"))


BURST_TOML = """
about = "sends sixty requests at once"
protocol = "openai-chat"
versions = ["1.0"]
default = "1.0"
install = ""
ends = [{ when = { type = "end" }, outcome = "success" }]
"""
BURST_SH = """#!/bin/sh
[ "${1-}" = --version ] && exec echo 1.0
exec /opt/codetaste/node/bin/node "$CODETASTE_AGENT/adapter/burst.mjs"
"""
BURST = """
const { CODETASTE_BASE_URL: url, CODETASTE_TOKEN: token, CODETASTE_MODEL: model } = process.env;
const send = async (number) => {
  const stream = number % 2 === 0;
  const messages = [{ role: 'user', content: `${number} ` + 'x'.repeat(2000) }];
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream, max_tokens: 1024 }),
  });
  await response.text();
  return response.status;
};
const statuses = await Promise.all(Array.from({ length: 60 }, (_, number) => send(number).catch(() => 0)));
console.log(JSON.stringify({ type: 'end', statuses }));
"""


def start_run(workspace: Workspace, leaks: Leaks) -> tuple[subprocess.Popen[str], str]:
    """Start the command; return a mark in the command lines of the commands in which its agents are stuck."""
    mark = f"{secrets.randbelow(10**9)}.5"
    workspace.env |= {**leaks.env, "TMPDIR": str(leaks.folder), "STUCK_S": mark}
    return workspace.start("--json"), mark


def stuck_commands(mark: str) -> list[str]:
    """The command lines of stuck commands with ``mark``."""
    return [command for command in tiny_benchmark.leftover_processes(mark) if f"sleep {mark}" in command]


def wait_for_commands(process: subprocess.Popen[str], mark: str, number: int) -> None:
    deadline = time.monotonic() + 200
    while sum(command.startswith("sleep") for command in stuck_commands(mark)) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def plan_calls(workspace: Workspace, bench: Bench, program: str) -> list[str]:
    """The billed calls of a CLI agent's plan step."""
    return [
        line["call"]
        for line in ledger_lines(workspace, f"infer/{program}/open/plan/{bench.rows[0].id}/plan/")
    ]
