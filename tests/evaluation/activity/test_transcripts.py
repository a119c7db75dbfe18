"""Agents' activity, from transcripts of the gateway, event logs and published logs."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from codetaste.benchmark.layout import ACTIVITY_FILE
from codetaste.evaluation.activity.counts import Activity, activity_from_json, write_activity
from codetaste.evaluation.activity.transcripts import activity_of_log, activity_of_trial

KEY = "infer/a/open/direct/x__y-01234567"


def write_lines(path: Path, *entries: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "".join(json.dumps(entry, sort_keys=True, separators=(",", ":")) + "\n" for entry in entries)
    )
    return path


def transcript(run: Path, *messages: Any, attempt: int = 1, error: str = "") -> Path:
    """Write a transcript of the gateway in which the model replies with ``messages``."""
    entries: list[Any] = [{"transcript": 2, "job": f"{KEY}/execute", "attempt": attempt, "protocol": "p"}]
    failed = {"error": error} if error else {}
    for number, each in enumerate(messages, 1):
        entries += [
            {"part": f"p{number}", "kind": "message", "value": each},
            {"request": number, "added": []},
            {
                "reply": number,
                "status": 200,
                "messages": [f"p{number}"],
                **failed,
            },
        ]
    return write_lines(run / "transcripts" / KEY / f"execute.attempt-{attempt}.jsonl", *entries)


def claude(*calls: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    content = [
        {"type": "tool_use", "id": str(n), "name": name, "input": given}
        for n, (name, given) in enumerate(calls)
    ]
    return {"role": "assistant", "content": content}


def qwen(name: str, given: dict[str, Any]) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(given)}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}


def codex(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"type": "function_call", "call_id": "1", "name": name, "arguments": json.dumps(given)}


def own(name: str, given: dict[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": [{"type": "call", "id": "1", "name": name, "arguments": given}]}


def test_claude_codes_calls_are_counted(tmp_path: Path) -> None:
    transcript(
        tmp_path,
        claude(("Bash", {"command": "pytest -q"}), ("Edit", {"file_path": "a", "replace_all": True})),
        claude(
            ("MultiEdit", {"edits": [{"replace_all": True}, {}]}), ("Write", {}), ("Read", {"file_path": "a"})
        ),
        claude(("Bash", {"command": "sed -i s/a/b/ *.py && pytest"})),
        {"role": "assistant", "content": [{"type": "text", "text": "sed -i, pytest"}]},
    )
    expected = Activity(commands=2, test_runs=2, bulk_edits=1, wide_edits=1, edits=3, replace_all=2)
    assert activity_of_trial(tmp_path, KEY) == expected


def test_codexs_calls_are_counted(tmp_path: Path) -> None:
    patch = "*** Begin Patch\n*** End Patch\n"
    transcript(
        tmp_path,
        codex("shell_command", {"command": "go test ./..."}),
        codex("shell", {"command": ["bash", "-lc", "rg -l a | xargs perl -pi -e s/a/b/"]}),
        codex("exec_command", {"cmd": f"apply_patch <<'E'\n{patch}E\n"}),
        {"type": "local_shell_call", "action": {"type": "exec", "command": ["pytest", "-q"]}},
        {"type": "custom_tool_call", "name": "apply_patch", "input": patch},
        {"type": "function_call_output", "output": "pytest"},
        {"type": "function_call", "name": "shell_command", "arguments": "{no json"},
    )
    expected = Activity(commands=5, test_runs=2, bulk_edits=1, wide_edits=1, edits=2)
    assert activity_of_trial(tmp_path, KEY) == expected


def test_qwen_codes_calls_are_counted(tmp_path: Path) -> None:
    transcript(
        tmp_path, qwen("run_shell_command", {"command": "npm test"}), qwen("edit", {}), qwen("write_file", {})
    )
    assert activity_of_trial(tmp_path, KEY) == Activity(commands=1, test_runs=1, edits=2)


def test_own_loop_calls_are_counted(tmp_path: Path) -> None:
    odd = {"$": "m", "v": [["command", "make test"], ["$", 1]]}
    entries = [
        {"model": "m", "system": "", "tools": ["bash", "edit", "finish"]},
        own("bash", {"command": "python - <<E\nfor p in x:\n  p.write_text(y)\nE"}),
        own("bash", odd),
        own("edit", {"path": "a", "old": "x", "new": "y", "replace_all": True}),
        own("finish", {"summary": "pytest"}),
    ]
    write_lines(tmp_path / "transcripts" / KEY / "execute.jsonl", *entries)
    expected = Activity(commands=2, test_runs=1, scripted_edits=1, edits=1, replace_all=1)
    assert activity_of_trial(tmp_path, KEY) == expected


def test_activity_long_part_is_read_from_blobs(tmp_path: Path) -> None:
    long = json.dumps(claude(("Bash", {"command": f"pytest # {'x' * 9000}"}))).encode()
    digest = hashlib.sha256(long).hexdigest()
    stored = tmp_path / "blobs" / digest[:2] / digest
    stored.parent.mkdir(parents=True)
    stored.write_bytes(long)
    entries = [
        {"part": "p1", "kind": "message", "stored": digest},
        {"part": "p2", "kind": "message", "stored": "../../etc/passwd"},
        {"request": 1, "added": []},
        {"reply": 1, "messages": ["p1", "p2", "p3"]},
    ]
    write_lines(tmp_path / "transcripts" / KEY / "execute.attempt-1.jsonl", *entries)
    assert activity_of_trial(tmp_path, KEY) == Activity(commands=1, test_runs=1)


def test_last_attempt_with_reply_counts(tmp_path: Path) -> None:
    transcript(tmp_path, claude(("Bash", {"command": "pytest"})), attempt=2)
    transcript(tmp_path, claude(("Bash", {"command": "ls"})), attempt=1)
    transcript(tmp_path, claude(("Bash", {"command": "ls; ls"})), attempt=10, error="overloaded")
    assert activity_of_trial(tmp_path, KEY) == Activity(commands=1, test_runs=1)


def test_activity_is_none_without_transcript(tmp_path: Path) -> None:
    assert activity_of_trial(tmp_path, KEY) is None
    write_lines(
        tmp_path / "transcripts" / KEY / "plan.plan-attempt-1.jsonl", own("bash", {"command": "pytest"})
    )
    assert activity_of_trial(tmp_path, KEY) is None


def test_printed_events_are_counted_without_transcript(tmp_path: Path) -> None:
    ran = {"id": "1", "type": "command_execution", "command": "/bin/bash -lc 'cargo test'"}
    write_lines(
        tmp_path / "events" / KEY / "execute.attempt-1.jsonl",
        {"type": "item.started", "item": ran},
        {"type": "item.completed", "item": ran},
        {"type": "item.completed", "item": {"type": "file_change", "changes": []}},
    )
    assert activity_of_trial(tmp_path, KEY) == Activity(commands=1, test_runs=1, edits=1)


CODEX_LOG = """\
user
Run exec, then sed -i, pytest
exec
/bin/bash -lc 'cd pkg && python - <<E
print("in /testbed")
E
pytest -q' in /testbed succeeded in 1.20s:
exec
bash -lc ls in /testbedCost: $0.0300 (2026-01-01T00:00:00Z)
 exited 2 in 10ms:
sed -i s/a/b/ x
file update
M /testbed/a.py
exec
it's never closed
{"finish_reason": "success"}
"""


def test_published_logs_of_cli_agents_are_read(tmp_path: Path) -> None:
    (tmp_path / "inference.out").write_text(CODEX_LOG)
    assert activity_of_log(tmp_path) == Activity(commands=2, test_runs=1, edits=1)
    event = {"type": "assistant", "message": claude(("Bash", {"command": "sed -i s/a/b/ f"}))}
    write_lines(tmp_path / "inference.out", {"type": "system"}, event, {"type": "result"})
    assert activity_of_log(tmp_path) == Activity(commands=1, bulk_edits=1)


@pytest.mark.parametrize("log", [None, b"", b"The task is done.\n", b"{\n" * 5, b"\xff\x00" * 99])
def test_log_without_calls_gives_none(tmp_path: Path, log: bytes | None) -> None:
    if log is not None:
        (tmp_path / "inference.out").write_bytes(log)
    assert activity_of_log(tmp_path) is None


def test_damaged_lines_are_skipped(tmp_path: Path) -> None:
    path = transcript(
        tmp_path, claude(("Bash", {"command": "pytest"})), claude(("Bash", {"command": ["x", 1]}))
    )
    path.write_bytes(
        b'{"kind":"message","part":"p9","value":[[[\n{"reply":[],"messages":3}\nnull\n'
        b'{"kind":"message","part":{"tool_use":1}}\n{"reply":7,"messages":{"a":1}}\n'
        + path.read_bytes()
        + b'{"reply":8,"messages":["p1"'
    )
    assert activity_of_trial(tmp_path, KEY) == Activity(commands=2, test_runs=1)


def test_activity_counts_are_stored_beside_scores(tmp_path: Path) -> None:
    known = Activity(commands=3, test_runs=1, edits=2)
    write_activity(tmp_path / "evaluation", known)
    stored = json.loads((tmp_path / "evaluation" / ACTIVITY_FILE).read_text())
    assert activity_from_json({**stored, "of a later version": 1}) == known
    write_activity(tmp_path / "none", None)
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "data", [{"commands": -1}, {"edits": 1.5}, {"commands": float("nan")}, {"edits": True}]
)
def test_damaged_counts_are_none(data: dict[str, Any]) -> None:
    assert activity_from_json(data) is None
