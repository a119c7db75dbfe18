"""What the commands say of real runs and instances."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.flows import discovery_models, tiny_benchmark
from support.flows.tiny_benchmark import Ended, Place, Tiny


def call(where: Place, alpha: Tiny, name: str, arguments: dict[str, Any], *more: str) -> Ended:
    bench = ("--benchmark", str(alpha.bench.root), "--repos", str(alpha.bench.repos))
    return where.cli(
        "tool", "call", name, "--instance", "tiny*", *bench, "--args", json.dumps(arguments), *more
    )


@pytest.fixture
def here(tmp_path: Path, alpha: Tiny) -> Place:
    return Place(tmp_path, alpha.cache, tmp_path)


def test_a_shell_command_is_tried_on_the_base_code(here: Place, alpha: Tiny) -> None:
    done = call(here, alpha, "bash_explore", {"command": "cat pack/one.py; exit 3"})
    assert done.code == 0
    assert "fetch_old('a')" in done.out
    assert "[exit code 3]" in done.out


def test_rules_are_tried_in_either_direction(here: Place, alpha: Tiny) -> None:
    rules = {"rules": discovery_models.yaml(discovery_models.NEW[0], discovery_models.OLD[0])}
    for direction, kept in (("additive", "calls-new"), ("reductive", "calls-old")):
        done = call(here, alpha, "register", rules, "--direction", direction, "--json")
        assert done.code == 0
        assert f"{kept}: registered" in done.json["answer"]
        assert done.json["answer"].count(": registered") == 1
        assert [kind for kind, _ in done.json["facts"]] == ["registered"]


def test_cli_tool_refusal_is_one_line_and_exit_code_1(here: Place, alpha: Tiny) -> None:
    done = call(here, alpha, "register", {"ruels": "x"})
    assert done.code == 1
    assert done.out == ""
    assert "bad arguments for register" in done.err.splitlines()[-1]


@pytest.mark.parametrize("command", ["echo a\0b", "echo " + "x" * 100_000, "echo \ud800"])
def test_a_command_that_no_program_can_be_given_is_refused(here: Place, alpha: Tiny, command: str) -> None:
    done = call(here, alpha, "bash_explore", {"command": command})
    assert done.code == 1
    assert "the tool refuses: " in done.err.splitlines()[-1]


def test_a_user_s_tool_that_fails_is_no_traceback(here: Place, alpha: Tiny) -> None:
    (here.folder / "mine.py").write_text(
        "from codetaste.agent.tool import tool\n\n@tool\nasync def look(context) -> str:\n"
        '    """Look."""\n    raise KeyError("gone")\n'
    )
    done = call(here, alpha, "mine.py:look", {})
    assert done.code == 1
    said = done.err.splitlines()[-1]
    assert (
        said.startswith("codetaste: the tool failed: KeyError: 'gone'") or "the tool failed: KeyError" in said
    )
    assert "mine.py:6" in said


def test_json_is_all_there_is_on_standard_output(undisturbed: tuple[Place, Ended], alpha: Tiny) -> None:
    where, done = undisturbed
    assert set(done.jobs) == {alpha.key("m", "additive"), alpha.key("m", "reductive")}
    job = done.jobs[alpha.key("m", "additive")]
    assert job["status"] == "done"
    assert Decimal(job["money"]["settled_usd"]) > 0
    assert (where.folder / job["path"]).is_file()
    assert done.json["exit_code"] == 0


def test_status_of_finished_run_lists_jobs_and_model_costs(
    undisturbed: tuple[Place, Ended], alpha: Tiny
) -> None:
    where, done = undisturbed
    status = where.cli("status", "r", "--json").json
    assert status["owner"] is None
    assert {job["key"]: job["state"] for job in status["jobs"]} == {
        f"sources/{alpha.row.id}": "done",
        alpha.key("m", "additive"): "done",
        alpha.key("m", "reductive"): "done",
    }
    (spent,) = status["models"].values()
    assert Decimal(spent["settled_usd"]) == Decimal(done.json["money"]["settled_usd"])
    assert where.cli("status", str(where.out)).out.startswith(str(where.out))


def test_the_status_of_a_live_run_says_who_is_at_work_and_in_what_state(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    process = where.start()
    try:
        tiny_benchmark.wait_for_progress(process, where.out, 5)
        status = where.cli("status", "r", "--json").json
        assert str(process.pid) in status["owner"]
        assert {job["state"] for job in status["jobs"] if job["model"]} == {"running"}
    finally:
        tiny_benchmark.kill(process)
    after = where.cli("status", "r", "--json").json
    assert {job["state"] for job in after["jobs"] if job["model"]} == {"interrupted"}


def test_an_unknown_run_is_named_with_those_that_there_are(undisturbed: tuple[Place, Ended]) -> None:
    where, _ = undisturbed
    done = where.cli("status", "q")
    assert done.code == 2
    assert done.err.splitlines() == ["codetaste: q: no run there (runs here: r)"]


def test_only_suggests_the_nearest_job(undisturbed: tuple[Place, Ended], alpha: Tiny) -> None:
    where, _ = undisturbed
    done = where.run("--only", alpha.key("m", "aditive"))
    assert done.code == 2
    assert f"did you mean '{alpha.key('m', 'additive')}'" in done.err


def test_a_dry_run_shows_jobs_needs_and_the_worst_case_and_starts_nothing(
    tmp_path: Path, alpha: Tiny
) -> None:
    where = alpha.place(tmp_path, {"m": "quick", "n": "quick"}, run="budget_usd = 1.5")
    done = where.run("--dry-run")
    assert done.code == 0
    assert f"{alpha.key('m', 'additive')}" in done.out
    assert f"needs sources/{alpha.row.id}" in done.out
    assert done.out.splitlines()[-1].endswith("they can cost $1.50 at most")
    assert done.err == ""
    planned = where.run("--dry-run", "--json", "--only", "*/additive").json
    assert [job["key"] for job in planned["jobs"] if job["model"]] == [
        alpha.key("m", "additive"),
        alpha.key("n", "additive"),
    ]
    assert not where.out.exists()


def test_a_run_without_a_flow_says_that_there_is_nothing_to_do(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "quick"})
    text = where.config.read_text()
    where.config.write_text(text[: text.index("[discover]")])
    done = where.run()
    assert done.code == 2
    assert "[discover]" in done.err
