"""The three real programs stopped in mid-task through the command itself: by money, by time, by Ctrl-C."""

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
from support.flows.cli_agent_runs import DEAR, PROGRAMS, Config, bench_of, bills, folder_of
from support.flows.tiny_benchmark import Bench, Ended, Place, Tiny
from support.flows.trial_runs import agent_table, applied, metadata
from support.system import dockerd
from support.system.leak_check import Leaks

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(400)]

SMALL, LIMIT = "0.30", "25s"
TWO_EDITS = 3
"""Answers of a model until its second edit: it looks first."""
DIRECT = "open/direct"


def edited(bench: Bench, folder: Path, into: Path, mark: str = "direct") -> bool:
    """Whether both edits, and nothing else, are in the patch."""
    files = applied(Tiny(bench, into), folder, into)
    rest = {name for name in files if files[name] != tiny_benchmark.BASE.get(name)} - {"NAME"}
    first = files["pack/store.py"].startswith(f"class Store:  # {mark}\n")
    return first and files.get("look.sh") == LOOK and rest == {"pack/store.py", "look.sh"}


@pytest.fixture(scope="module")
def stopped(
    tmp_path_factory: pytest.TempPathFactory, tools: None, agents_cache: Path
) -> tuple[Bench, Place, Ended]:
    """Each program with too little money, each with too little time, and one with enough of both."""
    bench = bench_of(tmp_path_factory.mktemp("bench"), "stopped")
    config = Config(bench, 'engine = "bubblewrap"\nmax = 7')
    config.programs("restless", f"budget_usd = {SMALL}", "-poor", DEAR)
    config.programs("stuck", f"time_limit = '{LIMIT}'", "-slow")
    config.program("codex", "coder")
    config.track(DIRECT)
    where = config.place(tmp_path_factory.mktemp("stopped"), agents_cache.parent)
    return bench, where, where.run("--json", timeout_s=300)


@pytest.mark.parametrize("program", PROGRAMS)
def test_cli_agent_over_budget_after_second_edit_keeps_both_edits(
    program: str, stopped: tuple[Bench, Place, Ended], tmp_path: Path
) -> None:
    bench, where, done = stopped
    agent, row = f"{program}-poor", bench.rows[0]
    folder = folder_of(where, row, DIRECT, agent)
    told = metadata(folder)
    assert told["finish_reason"] == "budget_exceeded"
    assert told["additional"]["turns"] == TWO_EDITS
    assert edited(bench, folder, tmp_path / "applied")
    billed = sum(Decimal(line["cost_usd"]) for line in bills(where, f"infer/{agent}/"))
    assert Decimal("0.2") < billed <= Decimal(SMALL)
    assert told["cost_usd"] == pytest.approx(float(billed))
    limits = {("infer", f"{agent}/{DIRECT}/{row.id}"): Decimal(SMALL)}
    assert tiny_benchmark.folded(where.journal(), limits).total("reserved", "unknown") == 0
    assert done.jobs[f"infer/{agent}/{DIRECT}/{row.id}"]["status"] == "budget_exceeded"


def test_reported_cost_mismatch_is_noted(stopped: tuple[Bench, Place, Ended]) -> None:
    bench, where, done = stopped
    told = metadata(folder_of(where, bench.rows[0], DIRECT, "claude-code-poor"))
    work = told["additional"]["steps"]["execute"]
    assert abs(float(work["reported_cost_usd"]) / told["cost_usd"] - 1) > 0.01
    assert work["reported_cost_usd"] in work["cost_mismatch"]
    assert work["cost_mismatch"] in done.err


@pytest.mark.parametrize("program", PROGRAMS)
def test_cli_agent_time_limit_in_command_keeps_edits(
    program: str, stopped: tuple[Bench, Place, Ended], tmp_path: Path
) -> None:
    bench, where, done = stopped
    agent, row = f"{program}-slow", bench.rows[0]
    folder = folder_of(where, row, DIRECT, agent)
    told = metadata(folder)
    assert told["finish_reason"] == "timeout"
    assert edited(bench, folder, tmp_path / "applied")
    assert told["additional"]["unknown_usd"] == "0"
    assert done.jobs[f"infer/{agent}/{DIRECT}/{row.id}"]["status"] == "timeout"


def test_others_go_on_where_some_are_stopped_and_nothing_of_any_is_left(
    stopped: tuple[Bench, Place, Ended],
) -> None:
    bench, where, done = stopped
    assert done.code == 0, "an outcome is no failure"
    assert metadata(folder_of(where, bench.rows[0], DIRECT, "codex"))["finish_reason"] == "success"
    assert list(tiny_benchmark.left_over(str(where.folder))) == []
    assert not [path for path in (where.out / ".sandboxes").rglob("*") if path.is_file()]


def test_ctrl_c_keeps_edits_and_resume_buys_no_plan_again(
    tmp_path: Path, tools: None, agents_cache: Path, nothing_left: Leaks
) -> None:
    bench = bench_of(tmp_path / "bench", "stopped")
    config = Config(bench, 'engine = "bubblewrap"\nmax = 3')
    config.programs("stuck_while")
    config.track("open/plan")
    where = config.place(tmp_path / "place", agents_cache.parent)
    (where.folder / "stuck").touch()
    process, mark = started(where, nothing_left)
    wait_for_commands(process, mark, len(PROGRAMS))
    process.send_signal(signal.SIGINT)
    done = tiny_benchmark.finished(process, 200)
    assert (done.code, running(mark)) == (130, [])
    assert {job["status"] for job in done.json["jobs"]} == {"cancelled"}
    assert "run the same command again to continue" in done.err
    for program in PROGRAMS:
        folder = folder_of(where, bench.rows[0], "open/plan", program)
        told = metadata(folder)
        assert (told["finish_reason"], told["additional"]["interruption"]) == ("unknown", "stopped"), program
        assert edited(bench, folder, tmp_path / program, "marker-7")
    before = {program: planned(where, bench, program) for program in PROGRAMS}
    (where.folder / "stuck").unlink()
    again = where.run("--json", timeout_s=200)
    assert again.code == 0, again.err
    for program in PROGRAMS:
        folder = folder_of(where, bench.rows[0], "open/plan", program)
        told = metadata(folder)
        assert told["finish_reason"] == "success"
        assert edited(bench, folder, tmp_path / f"{program}-again", "marker-7")
        assert before[program] == planned(where, bench, program) != []
        billed = sum(float(line["cost_usd"]) for line in bills(where, f"infer/{program}/"))
        assert told["cost_usd"] == pytest.approx(billed), "what was paid for the stopped one stays"
    starts = [line["key"].rpartition("/")[2] for line in where.journal() if line["event"] == "started"]
    assert (starts.count("plan"), starts.count("execute")) == (3, 6)
    for name in PROGRAMS.values():
        tiny_benchmark.assert_nothing_bought_twice(where.ledger(name))


@pytest.fixture(scope="module", params=["bubblewrap", pytest.param("docker", marks=pytest.mark.system)])
def engine(request: pytest.FixtureRequest) -> dockerd.DockerEngine | None:
    """The engine of boxes; None for those of this machine."""
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
    bench = bench_of(tmp_path / "bench", "twice")
    config = Config(bench, sandbox)
    config.program("codex", "stuck_while")
    config.track(DIRECT)
    where = config.place(tmp_path / "place", agents_cache.parent)
    (where.folder / "stuck").touch()
    process, mark = started(where, nothing_left)
    wait_for_commands(process, mark, 1)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    done = tiny_benchmark.finished(process, 200)
    assert (done.code, running(mark)) == (130, [])
    assert list(tiny_benchmark.left_over(str(where.folder))) == []
    (where.folder / "stuck").unlink()
    assert where.run("--json", timeout_s=200).code == 0
    folder = folder_of(where, bench.rows[0], DIRECT, "codex")
    assert metadata(folder)["finish_reason"] == "success"
    assert edited(bench, folder, tmp_path / "applied")
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("gpt-5.1-codex"))


def test_a_burst_of_requests_in_one_job_is_never_billed_above_its_budget(
    tmp_path: Path, tools: None, agents_cache: Path
) -> None:
    bench = bench_of(tmp_path / "bench", "burst")
    agent = tmp_path / "place" / "burst"
    agent.mkdir(parents=True)
    (agent / "agent.toml").write_text(BURST_TOML)
    (agent / "run.sh").write_text(BURST_SH)
    (agent / "run.sh").chmod(0o755)
    (agent / "burst.mjs").write_text(BURST)
    config = Config(bench)
    config.model("m", "dear_words", DEAR)
    config.tables.append(agent_table("b", "m", f"budget_usd = {SMALL}", "./burst"))
    config.track(DIRECT)
    where = config.place(tmp_path / "place", agents_cache.parent)
    done = where.run("--json")
    assert done.code == 0, done.err
    told = metadata(folder_of(where, bench.rows[0], DIRECT, "b"))
    assert told["finish_reason"] == "budget_exceeded"
    billed = sum(Decimal(line["cost_usd"]) for line in where.ledger("m"))
    assert Decimal("0.2") < billed <= Decimal(SMALL)
    assert Decimal(told["additional"]["settled_usd"]) == billed
    limits = {("infer", f"b/{DIRECT}/{bench.rows[0].id}"): Decimal(SMALL)}
    assert tiny_benchmark.folded(where.journal(), limits).total("settled") == billed


def test_cli_agents_beyond_run_budget_are_not_installed(tmp_path: Path, tools: None) -> None:
    bench = bench_of(tmp_path / "bench", "poor")
    config = Config(bench, run="budget_usd = 0.001")
    config.programs("coder")
    config.track(DIRECT)
    where = config.place(tmp_path / "place", tmp_path / "cache")
    done = where.run("--json")
    assert (done.code, {job["status"] for job in done.json["jobs"]}) == (1, {"budget_exceeded"})
    assert all("not started: needs at least" in job["error"] for job in done.json["jobs"])
    assert not (where.out / "outputs").exists(), "that is no outcome of a trial"
    assert not list((tmp_path / "cache").rglob("agents/*/installed.json"))


BURST_TOML = """
about = "asks sixty times at once"
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
const ask = async (number) => {
  const stream = number % 2 === 0;
  const messages = [{ role: 'user', content: `${number} ` + 'x'.repeat(2000) }];
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model, messages, stream, max_tokens: 1024 }),
  });
  await answer.text();
  return answer.status;
};
const said = await Promise.all(Array.from({ length: 60 }, (_, number) => ask(number).catch(() => 0)));
console.log(JSON.stringify({ type: 'end', said }));
"""


def started(where: Place, leaks: Leaks) -> tuple[subprocess.Popen[str], str]:
    """Start the command; returns a mark in the command lines of what its agents do not come back from."""
    mark = f"{secrets.randbelow(10**9)}.5"
    where.env |= {**leaks.env, "TMPDIR": str(leaks.folder), "STUCK_S": mark}
    return where.start("--json"), mark


def running(mark: str) -> list[str]:
    """The processes of this machine with ``mark`` in their command line."""
    return [said for said in tiny_benchmark.left_over(mark) if f"sleep {mark}" in said]


def wait_for_commands(process: subprocess.Popen[str], mark: str, number: int) -> None:
    deadline = time.monotonic() + 200
    while sum(said.startswith("sleep") for said in running(mark)) < number:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


def planned(where: Place, bench: Bench, program: str) -> list[str]:
    """The calls that were paid for a program's plan."""
    return [line["call"] for line in bills(where, f"infer/{program}/open/plan/{bench.rows[0].id}/plan/")]
