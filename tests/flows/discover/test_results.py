"""Rules that discovery finds, in the published layout; swapped commits swap the rules."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import (
    QUICKSTART,
    Bench,
    CommandResult,
    TinyBenchmark,
    Workspace,
    make_workspace,
)


def read_rules(workspace: Workspace, model: str, direction: str) -> dict[str, dict[str, Any]]:
    name = {"additive": "rules_positive.yml", "reductive": "rules_negative.yml"}[direction]
    (path,) = (workspace.out / "discover" / model).rglob(name)
    return {rule["id"]: rule for rule in YAML(typ="safe").load(path.read_text("utf-8"))["rules"]}


def test_tiny_benchmark_rules_have_expected_counts(
    uninterrupted_run: tuple[Workspace, CommandResult],
) -> None:
    workspace, result = uninterrupted_run
    assert result.code == 0
    counted = {
        direction: {
            name: (rule["metadata"]["nr_legacy_patterns"], rule["metadata"]["nr_refactored_patterns"])
            for name, rule in read_rules(workspace, "m", direction).items()
        }
        for direction in ("additive", "reductive")
    }
    assert counted == {
        "additive": {"calls-new": (0, 3), "imports-new": (0, 2), "defines-new": (0, 1)},
        "reductive": {
            "calls-old": (3, 0),
            "imports-old": (2, 0),
            "defines-old": (1, 0),
            "object-base": (1, 0),
        },
    }


def test_discovered_rules_form_a_benchmark(
    uninterrupted_run: tuple[Workspace, CommandResult], alpha: TinyBenchmark
) -> None:
    workspace, _ = uninterrupted_run
    product = workspace.out / "discover" / "m"
    with (product / "instances.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["owner"], row["repo"], row["commit_hash"]) == ("tiny", "alpha", alpha.row.base)
    assert (product / f"assets/descriptions/{alpha.row.path}/description.md").is_file()
    checked = workspace.cli(
        "rules", "check", "--benchmark", str(product), "--repos", str(alpha.bench.repos), "--json"
    )
    assert checked.code == 0, checked.out
    dry = workspace.run("--dry-run", "--set", f"benchmark.path={product}")
    assert dry.code == 0


@pytest.mark.heavy
def test_quickstart_finds_both_directions_and_names_scripted_model(
    quickstart: tuple[Workspace, CommandResult],
) -> None:
    workspace, result = quickstart
    assert result.code == 0
    assert [job["status"] for job in result.json["jobs"]] == ["done", "done"]
    assert result.json["scripted_models"] == ["scripted"]
    for direction, legacy, refactored in (("additive", False, True), ("reductive", True, False)):
        rules = read_rules(workspace, "scripted", direction)
        assert len(rules) >= 5
        for rule in rules.values():
            assert (rule["metadata"]["nr_legacy_patterns"] > 0) is legacy
            assert (rule["metadata"]["nr_refactored_patterns"] > 0) is refactored


def accepted_rules(workspace: Workspace, model: str) -> dict[str, set[str]]:
    return {
        direction: set(read_rules(workspace, model, direction)) for direction in ("additive", "reductive")
    }


@pytest.mark.heavy
def test_swapped_base_and_golden_swap_accepted_rules(tmp_path: Path, tools: None) -> None:
    """The model registers the same seven rules in either direction, in both runs."""
    accepted = {}
    for name, swap in (("straight", False), ("swapped", True)):
        bench = Bench(tmp_path / name)
        bench.add(swap=swap)
        workspace = make_workspace(tmp_path / name, bench, tmp_path / "cache", {"m": "both"})
        assert workspace.run().code == 0
        accepted[name] = accepted_rules(workspace, "m")
    assert accepted["straight"] == {
        "additive": {"calls-new", "imports-new", "defines-new"},
        "reductive": {"calls-old", "imports-old", "defines-old", "object-base"},
    }
    assert accepted["swapped"]["additive"] == accepted["straight"]["reductive"]
    assert accepted["swapped"]["reductive"] == accepted["straight"]["additive"]


@pytest.mark.heavy
def test_quickstart_swapped_base_and_golden_rejects_all_rules(
    tmp_path: Path, quickstart: tuple[Workspace, CommandResult]
) -> None:
    straight, _ = quickstart
    accepted = accepted_rules(straight, "scripted")
    bench = tmp_path / "bench"
    original = QUICKSTART.parent / "quickstart"
    with (original / "instances.csv").open(newline="") as file:
        (row,) = csv.DictReader(file)
    row["commit_hash"], row["golden_commit_hash"] = row["golden_commit_hash"], row["commit_hash"]
    sdist, base, golden = row["origin"].split("/")
    row["origin"] = f"{sdist}/{golden}/{base}"
    texts = bench / "assets/descriptions/pytest-dev/pluggy" / row["commit_hash"][:8]
    texts.mkdir(parents=True)
    for text in original.rglob("*description.md"):
        (texts / text.name).write_bytes(text.read_bytes())
    (bench / "instances.csv").write_text(",".join(row) + "\n" + ",".join(row.values()) + "\n")
    workspace = Workspace(tmp_path, straight.cache, QUICKSTART, "quickstart")
    result = workspace.run("--json", "--set", f'benchmark.path="{bench}"')
    assert result.code == 0
    swapped = accepted_rules(workspace, "scripted")
    # The script registers the same rules in each pass as before.
    assert accepted["additive"]
    assert accepted["reductive"]
    assert not accepted["additive"] & swapped["additive"]
    assert not accepted["reductive"] & swapped["reductive"]


def test_transcript_contains_whole_conversation_of_each_pass(
    uninterrupted_run: tuple[Workspace, CommandResult],
) -> None:
    workspace, _ = uninterrupted_run
    paths = sorted((workspace.out / "transcripts").rglob("*.jsonl"))
    assert len(paths) == 2
    for path in paths:
        head, *messages = [json.loads(line) for line in path.read_text().splitlines()]
        assert "system" in head
        assert [message["role"] for message in messages[:3]] == ["user", "assistant", "user"]
        assert len(messages) == 1 + 2 * 6


@pytest.mark.heavy
@pytest.mark.parametrize("model", ["scripted"])
def test_agent_prompt_contains_nothing_of_golden_commit(
    quickstart: tuple[Workspace, CommandResult], model: str
) -> None:
    """No message to the additive model has the text of a line that only R∘X* has."""
    workspace, _ = quickstart
    (path,) = (workspace.out / "transcripts").rglob("additive.jsonl")
    messages = [json.loads(line) for line in path.read_text().splitlines()][2:]
    tool_output = "\n".join(
        block["content"]
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
        if "content" in block
    )
    assert tool_output
    assert "def _multicall(hook_name" not in tool_output
    assert "self._hookexec(self.name" not in tool_output


@pytest.mark.heavy
def test_two_instances_two_models_make_eight_passes_only_selects(tmp_path: Path, tools: None) -> None:
    bench = Bench(tmp_path)
    rows = [bench.add(), bench.add("beta")]
    workspace = make_workspace(
        tmp_path, bench, tmp_path / "cache", {"m": "quick", "n": "quick"}, run="budget_usd = 9.0"
    )
    planned = workspace.run("--dry-run", "--json").json
    assert len([job for job in planned["jobs"] if job["model"]]) == 8
    assert planned["worst_case_usd"] == "4.0"
    assert not workspace.out.exists()
    some = workspace.run("--json", "--only", f"discover/n/{rows[1].id}/*")
    assert some.code == 0
    assert set(some.jobs) == {
        f"discover/n/{rows[1].id}/{direction}" for direction in ("additive", "reductive")
    }
    every = workspace.run("--json")
    assert every.code == 0
    assert {key for key, job in every.jobs.items() if job["resumed"]} == set(some.jobs)
    assert len(every.jobs) == 8
    assert len(workspace.rules()) == 8
    for model in ("m", "n"):
        tiny_benchmark.assert_no_call_billed_twice(workspace.ledger(model))


def test_pass_that_only_repeats_ends_with_its_rules(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "repeating"}, discover="budget_usd = 1.0")
    result = workspace.run("--json", "--only", "*/additive", "--set", "discover.max_output_tokens=256")
    assert result.code == 1
    [job] = result.json["jobs"]
    assert (job["ending"], job["value"]["rules"], job["value"]["turns"]) == ("repeated", 1, 9)
    assert job["reason"] == "4 calls of register in a row only repeated earlier ones"
    (path,) = (workspace.out / "transcripts").rglob("additive.jsonl")
    assert path.read_text().count("this is a repetition: the same rule was submitted before") == 4
