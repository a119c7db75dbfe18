"""With --json every command prints one JSON document, for good input and for bad."""

from __future__ import annotations

import inspect
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cyclopts import App

from codetaste.cli.app import app
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace

BAD: dict[str, list[str]] = {
    "run": ["nofile.toml"],
    "view": ["r", "--port", "70000"],
    "status": ["nope"],
    "case-study": ["nope", "--config", "nofile.toml"],
    "limit": ["r", "--jobs", "0"],
    "settle": ["r", "no-such-call", "--usd", "1"],
    "doctor": ["surplus"],
    "agents": ["surplus"],
    "agents install": ["no-such-agent"],
    "java": ["surplus"],
    "java install": ["no-such-jars"],
    "swe-refactor build": ["nofile.toml"],
    "swe-refactor check": ["nofile.json"],
    "swe-refactor examples": ["nowhere", "--to", "examples.jsonl"],
    "swe-refactor explain": ["nowhere", "abc"],
    "swe-refactor list": ["nofile.json"],
    "swe-refactor report": ["nowhere"],
    "swe-refactor review": ["nofile.json"],
    "swe-refactor sample": ["nofile.json"],
    "swe-refactor show": ["nofile.json", "x"],
    "benchmark check": ["--benchmark", "nowhere"],
    "benchmark fetch": ["codetaste10"],
    "benchmark list": ["--language", "klingon"],
    "benchmark adopt": ["nowhere"],
    "benchmark export": ["--harbor", "tasks", "--benchmark", "nowhere"],
    "benchmark from-repo": ["nowhere"],
    "mine explain": ["acme/anvil", "no-hash"],
    "mine run": ["nofile.toml"],
    "review": ["nowhere"],
    "benchmark new": ["--repo", "nowhere", "--base", "a", "--golden", "b"],
    "benchmark show": ["no-such-instance"],
    "config check": ["nofile.toml"],
    "config schema": ["surplus"],
    "environment build": ["--benchmark", "nowhere"],
    "environment check": ["--benchmark", "nowhere"],
    "evaluate": ["--instance", "*", "--patch", "nofile.diff"],
    "export": ["nowhere", "--to", "atif", "-o", "exported"],
    "init": ["--example", "no-such-example"],
    "image build": ["--lean", "--dockerfile", "."],
    "image check": [],
    "image list": ["surplus"],
    "image load": [],
    "image pull": [],
    "image push": [],
    "image rm": [],
    "image save": [],
    "import": ["nowhere", "--name", "x"],
    "report": ["nowhere"],
    "rules check": ["--benchmark", "nowhere"],
    "tool list": ["surplus"],
    "tool schema": ["registr"],
    "tool call": ["bash_explore", "--instance", "tiny*", "--args", "["],
}


ELSEWHERE = {
    *(
        "agents install",
        "java install",
        "benchmark adopt",
        "benchmark export",
        "benchmark fetch",
        "benchmark from-repo",
    ),
    *("case-study", "mine explain", "mine run", "review", "view"),
    *(name for name in BAD if name.startswith(("environment ", "image ", "swe-refactor "))),
}
"""Good input to them needs a registry, a container engine, a benchmark or scored trials, or does not end."""


def make_published_outputs(folder: Path) -> Path:
    """Write the outputs of one trial with a patch only."""
    trial = folder / "published" / "open" / "direct" / "o" / "r" / "01234567" / "a"
    trial.mkdir(parents=True, exist_ok=True)
    (trial / "prediction.diff").write_text("\n")
    return folder / "published"


def good_input(name: str, workspace: Workspace, alpha: TinyBenchmark) -> list[str]:
    repos = ["--repos", str(alpha.bench.repos)]
    bench, found = (["--benchmark", at, *repos] for at in (str(alpha.bench.root), "runs/r/discover/m"))
    clone, new = str(alpha.bench.repos / "tiny" / alpha.row.repo), f"new-{secrets.token_hex(4)}"
    return {
        "run": [str(workspace.config), "--dry-run"],
        "status": ["r"],
        "limit": ["r"],
        "settle": ["r"],
        "doctor": [],
        "agents": [],
        "java": [],
        "benchmark list": bench,
        "benchmark show": ["tiny*", *bench],
        "benchmark new": [
            *("--repo", clone, "--base", alpha.row.base, "--golden", alpha.row.golden, "--to", new),
        ],
        "config check": [str(workspace.config)],
        "config schema": [],
        "init": [new],
        "import": [str(make_published_outputs(workspace.folder)), "--name", f"taken-{secrets.token_hex(4)}"],
        "export": [str(make_published_outputs(workspace.folder)), "--to", "atif", "-o", new],
        "report": ["--benchmark", "quickstart", "--table", "1"],
        "benchmark check": found,
        "evaluate": [*found, "--instance", "tiny*", "--patch", "golden"],
        "rules check": found,
        "tool list": [],
        "tool schema": ["finish"],
        "tool call": ["bash_explore", "--instance", "tiny*", *bench, "--args", '{"command": "ls"}'],
    }[name]


def leaf_commands(part: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Every command without subcommands, with its name."""
    for name in part:
        if not name.startswith("-"):
            yield from leaf_commands(part[name], (*path, name))
    if path and part.default_command is not None:
        yield " ".join(path), part


COMMANDS = dict(leaf_commands(app))


def test_every_command_is_tested_here_and_takes_json() -> None:
    assert COMMANDS.keys() == BAD.keys()
    for name, command in COMMANDS.items():
        assert command.default_command is not None
        assert "json_" in inspect.signature(command.default_command).parameters, name


@pytest.fixture
def finished_run(uninterrupted_run: tuple[Workspace, CommandResult]) -> Workspace:
    return uninterrupted_run[0]


def parse_document(result: CommandResult) -> Any:
    """Parse the one document on standard output, which has nothing before or after it."""
    value, end = json.JSONDecoder().raw_decode(result.out)
    assert result.out[end:] == "\n"
    assert next(iter(value.items())) == ("json_format", 1) or "$defs" in value
    return value


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(BAD.keys() - ELSEWHERE))
def test_good_input_gives_one_document_and_exit_code_0(
    name: str, finished_run: Workspace, alpha: TinyBenchmark
) -> None:
    result = finished_run.cli(*name.split(), *good_input(name, finished_run, alpha), "--json")
    assert result.code == 0, result.err
    document = parse_document(result)
    # A status has an "error", too: that of the run's last session, here null.
    assert document.get("error") is None


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("option", [[], ["--nope"]], ids=["value", "option"])
def test_bad_input_gives_one_document_with_error_and_exit_code(
    name: str, option: list[str], finished_run: Workspace
) -> None:
    result = finished_run.cli(*name.split(), *BAD[name], *option, "--json")
    assert result.code == 2
    document = parse_document(result)
    assert document.keys() == {"json_format", "error", "exit_code"}
    assert document["exit_code"] == 2
    assert document["error"]["cause"] == "config"
    assert document["error"]["messages"]
    # Standard error has the same messages, in another layout.
    plain = " ".join(result.err.replace("│", " ").split())
    for message in document["error"]["messages"]:
        assert message.split()[0] in plain


def test_refused_tool_call_gives_one_document_and_exit_code_1(
    finished_run: Workspace, alpha: TinyBenchmark
) -> None:
    bench = ["--benchmark", str(alpha.bench.root), "--repos", str(alpha.bench.repos)]
    result = finished_run.cli(
        "tool", "call", "register", "--instance", "tiny*", *bench, "--args", '{"ruels": 1}', "--json"
    )
    assert result.code == 1
    assert parse_document(result)["error"]["cause"] == "tool"


def test_both_run_commands_report_equal_errors(finished_run: Workspace) -> None:
    other = Workspace(finished_run.folder, finished_run.cache, finished_run.folder / "nofile.toml")
    one, two = other.run("--json"), other.cli("run", str(other.config), "--json")
    assert (one.code, parse_document(one)) == (two.code, parse_document(two))


BY_NAME = {"concurrency", "statuses", "models", "options", "prices", "limits", "retries", "waited_s"}
"""Objects whose keys are names from the config."""
FOREIGN = {"price", "value", "parameters", "facts"}
"""Objects whose inner keys are not codetaste's."""


def keys_of(document: Any) -> Iterator[str]:
    if isinstance(document, list):
        for each in document:
            yield from keys_of(each)
    elif isinstance(document, dict):
        for key, value in document.items():
            yield key
            if key not in FOREIGN:
                named = key in BY_NAME and isinstance(value, dict)
                yield from keys_of(list(value.values()) if named else value)


@pytest.mark.heavy
def test_every_json_key_is_documented(finished_run: Workspace, alpha: TinyBenchmark) -> None:
    page = (Path(__file__).parents[3] / "docs" / "programs.md").read_text("utf-8")
    documented = set(re.findall(r"`([a-z_0-9]+)`", page))
    more = [["status", "r", "--job", "*"], ["run", str(finished_run.config)]]
    names = BAD.keys() - ELSEWHERE - {"config schema"}  # its keys are those of a config, in docs/config.md
    typed = [[*name.split(), *good_input(name, finished_run, alpha)] for name in names]
    for command in [*typed, *more]:
        keys = set(keys_of(parse_document(finished_run.cli(*command, "--json"))))
        assert keys <= documented, (command, keys - documented)
    for log in (finished_run.out / "logs").rglob("*.jsonl"):
        for line in log.read_text().splitlines():
            assert set(json.loads(line)) <= documented, line
