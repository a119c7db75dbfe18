"""What a model is told in a discovery run: prompts, also of one's own, and the answers of ``register``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace

pytestmark = pytest.mark.heavy


def conversation(workspace: Workspace, direction: str) -> list[dict[str, Any]]:
    (path,) = (workspace.out / "transcripts").rglob(f"{direction}.jsonl")
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_register_answers_with_what_no_rule_touches_yet(
    uninterrupted_run: tuple[Workspace, CommandResult],
) -> None:
    workspace, _ = uninterrupted_run
    additive, reductive = (json.dumps(conversation(workspace, each)) for each in ("additive", "reductive"))
    assert "2 reductive rules registered: calls-old, imports-old." in reductive
    assert "No rule matches in these files with names of the description: README.md." in reductive
    assert "4 reductive rules registered: calls-old, imports-old, defines-old, object-base." in reductive
    assert "No rule mentions" not in reductive
    assert "3 additive rules registered: calls-new, imports-new, defines-new." in additive
    assert "No rule mentions these names of the description: fetch_old." in additive
    assert "No rule matches" not in additive


def test_prompts_of_a_folder_are_used_and_are_part_of_the_fingerprint(
    tmp_path: Path, alpha: TinyBenchmark
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"}, run='budget_usd = 2.0\nprompts = "mine"')
    own = tmp_path / "mine"
    own.mkdir()
    (own / "discover_task.md").write_text("Mine: {{ direction }}, {{ description }}")
    assert workspace.run("--json").code == 0
    assert "Mine: additive, Rename fetch_old" in json.dumps(conversation(workspace, "additive"))
    assert {job["resumed"] for job in workspace.run("--json").json["jobs"]} == {True}
    (own / "discover_task.md").write_text("Mine again: {{ direction }}, {{ description }}")
    again = workspace.run("--json", "--yes", "--only", "*/additive")
    assert {job["resumed"] for job in again.json["jobs"]} == {False}
    assert "Mine again: additive" in json.dumps(conversation(workspace, "additive"))


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("discover_tasks.md", "x", "replaces no prompt"),
        (
            "discover_task.md",
            "{{ nothing }}",
            "there is no value 'nothing' (known: description, direction, language)",
        ),
        ("discover_task.md", "fine\n{% if %}", "discover_task.md:2: "),
        ("other.txt", "x", "has no prompt; the names are"),
    ],
)
def test_wrong_prompt_is_one_line_and_nothing_starts(
    tmp_path: Path, alpha: TinyBenchmark, name: str, text: str, problem: str
) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "quick"}, run='prompts = "mine"')
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / name).write_text(text)
    result = workspace.run()
    assert result.code == 2
    (line,) = [line for line in result.err.splitlines() if problem in line]
    assert str(tmp_path / "mine") in line
    assert workspace.ledger("m") == []
