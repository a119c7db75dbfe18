"""Agents refactor a real Maven project, well and badly: real tools, scripted models, killed and continued."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Workspace, assert_no_finished_job_ran_twice, leftover_processes
from support.swe_refactor.agent_trials import AgentSetup, answers, make_agents_run, trial_rows
from support.swe_refactor.tested_project import AFTER, SHOP

_LONG_S = 1700.0
OWN = "codetaste"
SMALL = "budget_usd = 0.5"
AGENTS = {
    "own": AgentSetup(OWN, "solve"),
    "qwen": AgentSetup("qwen-code", "solve", model="qwen3-coder-plus"),
    "restless": AgentSetup(OWN, "restless", SMALL),
    "leave-process": AgentSetup(OWN, "leave_process"),
    "idle": AgentSetup(OWN, "idle"),
    "spend": AgentSetup(OWN, "spend", SMALL),
    "edit-tests": AgentSetup(OWN, "edit_tests"),
    "edit-build": AgentSetup(OWN, "edit_build"),
    "delete": AgentSetup(OWN, "delete"),
    "flood": AgentSetup(OWN, "flood"),
    "link": AgentSetup(OWN, "link"),
}
OUTCOMES = {
    **dict.fromkeys(("own", "qwen", "restless", "leave-process"), "verified"),
    "idle": "no_change",
    "spend": "no_answer",
    "edit-tests": "edits_tests",
    "edit-build": "edits_build",
    "delete": "edits_build",
    "flood": "bad_patch",
    "link": "outside",
}


def note(line: dict[str, Any], key: str, text: str) -> bool:
    return line["event"] == "note" and line["key"].startswith(key) and text in line["text"]


def kill_at_tests(workspace: Workspace) -> None:
    """Kill the run when its own loop runs the tests of the project."""
    process = workspace.start()
    deadline = time.monotonic() + _LONG_S
    while not any(note(line, "answer/agent/own/", "mvn -o test") for line in workspace.journal()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    tiny_benchmark.kill(process)


@pytest.mark.heavy
@pytest.mark.timeout(3600)
def test_each_agent_has_its_outcome(tmp_path: Path, agents_cache: Path, bubblewrap: Path) -> None:
    workspace = make_agents_run(tmp_path, AGENTS, agents_cache)
    kill_at_tests(workspace)
    paid = len(workspace.ledger("model-own"))
    done = workspace.run("--json", timeout_s=_LONG_S)
    rows, found = trial_rows(workspace), answers(workspace)
    assert {agent: row["outcome"] for agent, row in rows.items()} == OUTCOMES, done.err
    assert not [*leftover_processes("sleep 4321")]
    assert_no_finished_job_ran_twice(workspace.journal())

    assert 0 < paid < len(workspace.ledger("model-own")) == 5, "no reply is paid twice"
    assert (rows["own"]["turns"], rows["own"]["codebleu"], rows["own"]["success"]) == (5, 1.0, True)
    assert rows["own"]["detail"] == ""
    statuses = {
        job["key"].split("/")[2]: job["status"] for job in done.json["jobs"] if "answer/" in job["key"]
    }
    assert {agent for agent, status in statuses.items() if status != "done"} == {"restless", "spend"}
    assert statuses["restless"] == "budget_exceeded"

    seen = found["qwen"]["details"]["run"]["message"]
    assert seen.startswith("It is done.; commits: 1; javac 17"), seen
    assert "Tests run: 2, Failures: 0, Errors: 0" in seen
    assert "golden" not in seen
    for agent in ("own", "qwen"):
        value = found[agent]
        assert list(value["files"]) == [SHOP]
        assert value["details"]["patch"]["files"] == 1
        assert "NOTES.md" in str(value["details"]["patch"]["notes"])
        assert value["wall_s"] > 0
        assert (workspace.out / value["details"]["run"]["log"]).stat().st_size
    # The run counts the calls of the last attempt, the row those of the attempt that was killed, too.
    last = Decimal(found["qwen"]["details"]["run"]["cost_usd"])
    more = Decimal(rows["qwen"]["cost_usd"]) - last
    assert more >= 0
    assert more % (last / 5) == 0, "whole calls"
    assert "budget" in found["spend"]["problem"]["sentence"]
    assert "big.bin" in str(found["flood"]["details"]["patch"]["notes"])
    assert (workspace.folder / "example/shop" / SHOP).read_text() == AFTER, "the clone stays as it was"
