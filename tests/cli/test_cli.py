"""The ``codetaste`` command: help, listings, and the errors for mistakes on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]


def codetaste(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    program = "from codetaste.cli.app import main; main()"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *args],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert "Traceback" not in done.stderr + done.stdout
    return done


@pytest.mark.parametrize(
    ("words", "usage"),
    [
        ("run", "run [OPTIONS] CONFIG"),
        ("settle", "settle [OPTIONS] RUN [CALL]"),
        ("report", "report [OPTIONS] [RUNS...]"),
        ("benchmark fetch", "benchmark fetch [OPTIONS] [NAME]"),
        ("benchmark list", "benchmark list [OPTIONS]"),
        ("agents install", "agents install [OPTIONS] [NAMES...]"),
    ],
)
def test_help_names_optional_arguments_and_shows_no_empty_default(
    words: str, usage: str, tmp_path: Path
) -> None:
    done = codetaste(tmp_path, *words.split(), "--help")
    assert done.stdout.startswith(f"Usage: codetaste {usage}\n")
    assert "[default: published]" in codetaste(tmp_path, "evaluate", "--help").stdout
    for empty in ("()", '""', "False"):
        assert f"[default: {empty}]" not in done.stdout


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["rnu", "config.toml"], 'Did you mean "run"'),
        (["run"], "CONFIG"),
        (["run", "nofile.toml"], "nofile.toml: no such file"),
        (["report", "x", "--out", ""], "Invalid value for --out: must not be empty"),
        (["run", "c.toml", "--dryrun"], "Did you mean --dry-run"),
        (["run", "c.toml", "--set"], "--set"),
        (["run", "c.toml", "more.toml"], "more.toml"),
        (["status"], "RUN"),
        (["status", "nope"], "nope: no run there"),
        (["status", "n" * 5000], "nnn…: no run there"),
        (["limit", "nope", "--jobs", "2"], "nope: no run there"),
        (["limit"], "RUN"),
        (["settle", "nope"], "nope: no run there"),
        (["status", "nope", "--jso"], "Did you mean --json"),
        (["tool", "lst"], 'Did you mean "list"'),
        (["tool", "schema", "registr"], "did you mean 'register'"),
        (["tool", "schema", "no_such_module:x"], "no_such_module"),
        (["tool", "schema", "codetaste.errors:Cause"], "is not a tool"),
        (["tool", "call", "finish"], "--instance"),
        (
            ["tool", "call", "finish", "--instance", "pytest-dev__plugy-15b2acde"],
            "did you mean pytest-dev__pluggy",
        ),
        (["tool", "call", "finsh", "--instance", "pytest*"], "did you mean 'finish'"),
        (["tool", "call", "finish", "--instance", "pytest*", "--args", "{"], "--args is not JSON"),
        (["tool", "call", "finish", "--instance", "pytest*", "--args", "[" * 5000], "--args is not JSON"),
        (["tool", "call", "finish", "--instance", "pytest*", "--args", "[1]"], "JSON object"),
        (["report", "n" * 300], "File name too long"),
        (["import", "n" * 300, "--name", "x"], "File name too long"),
        (["run", "."], ".: cannot be read: Is a directory"),
        (["tool", "call", "finish", "--instance", "pytest*", "--benchmark", "nowhere"], "nowhere"),
        (
            ["tool", "call", "finish", "--instance", "pytest*", "--repos", "nowhere"],
            "nowhere is not a folder",
        ),
        (["tool", "call", "finish", "--instance", "pytest*", "--direction", "sideways"], "additive"),
        (["rules", "chek"], 'Did you mean "check"'),
        (["rules", "check", "--benchmark", "nowhere"], "nowhere: no such benchmark folder"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, list) else "",
)
def test_cli_mistake_exits_2_and_suggests_correction(tmp_path: Path, args: list[str], expected: str) -> None:
    done = codetaste(tmp_path, *args)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert expected in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_and_version_are_printed(tmp_path: Path) -> None:
    shown = codetaste(tmp_path, "--help")
    assert shown.returncode == 0
    for name in ("run", "status", "doctor", "rules", "tool"):
        assert f" {name} " in shown.stdout
    assert codetaste(tmp_path, "--version").stdout.strip().count(".") == 2
    for option in ("--set", "--only", "--dry-run", "--rerun", "--json"):
        assert option in codetaste(tmp_path, "run", "--help").stdout


def test_tools_are_listed_and_described_as_a_model_sees_them(tmp_path: Path) -> None:
    lines = codetaste(tmp_path, "tool", "list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["bash_explore", "register", "finish"]
    listed = json.loads(codetaste(tmp_path, "tool", "list", "--json").stdout)["tools"]
    assert [tool["name"] for tool in listed] == ["bash_explore", "register", "finish"]
    schema = json.loads(codetaste(tmp_path, "tool", "schema", "bash_explore").stdout)
    assert schema == {"json_format": 1, **listed[0]}
    assert schema["parameters"]["required"] == ["command"]
    assert "context" not in schema["parameters"]["properties"]


def test_tool_in_a_users_file_is_described(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from codetaste.agent.tool import tool\n\n@tool\nasync def look(context, where: str) -> str:\n"
        '    """Look there."""\n    return where\n'
    )
    schema = json.loads(codetaste(tmp_path, "tool", "schema", "mine.py:look").stdout)
    assert (schema["name"], schema["description"]) == ("look", "Look there.")


def test_both_run_commands_print_the_same_plan(tmp_path: Path) -> None:
    config = str(CHECKOUT / "examples" / "quickstart.toml")
    one = codetaste(tmp_path, "run", config, "--dry-run", "--json")
    other = subprocess.run(
        [sys.executable, "-W", "error", "-m", "codetaste.run", config, "--dry-run", "--json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (one.returncode, one.stdout) == (other.returncode, other.stdout)
    assert json.loads(one.stdout)["worst_case_usd"] == "1.0"
    assert list(tmp_path.iterdir()) == []
