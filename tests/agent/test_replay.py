"""A killed conversation is resumed in a new sandbox, in which its tool calls are replayed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import CodetasteError
from codetaste.sandbox.containment.engine import choose_engine

SCRIPT = Path(__file__).parents[1] / "support" / "harness" / "killed_loop.py"
COMMAND_S = 1.0
"""Duration of the slow command, each time."""


@pytest.fixture(autouse=True)
def contained(require: Callable[..., None]) -> None:
    try:
        choose_engine("bubblewrap")
    except CodetasteError as error:
        require("bwrap", ok=False, reason=str(error))


def run_conversation(folder: Path, *, kill_at_turn: int = 0, number: int = 1) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), str(folder), str(kill_at_turn), str(number)]
    process = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert process.returncode == (-signal.SIGKILL if kill_at_turn else 0), process.stderr
    return {} if kill_at_turn else json.loads(process.stdout)


def count_model_replies(folder: Path) -> int:
    return len((folder / "ledger.jsonl").read_text().splitlines())


@pytest.mark.heavy
def test_resume_after_kill_replays_calls_without_model_requests(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    expected = run_conversation(whole)
    assert (expected["status"], expected["end"], expected["notes"]) == ("done", "finished", [])
    assert expected["calls"] == 9
    for turn in (2, 4, 5):
        run_conversation(killed, kill_at_turn=turn)
        assert count_model_replies(killed) == turn - 1
    report = run_conversation(killed)
    assert (report["status"], report["end"], report["notes"]) == ("done", "finished", [])
    assert report["files"] == expected["files"]
    assert report["tool_results"] == expected["tool_results"]
    assert report["requested_turns"] == [5]
    assert report["calls"] == 1, "only the last call was made for the first time"
    assert count_model_replies(killed) == count_model_replies(whole) == 5
    waited_s = report["wall_s"] - report["worked_s"]
    assert waited_s >= COMMAND_S, "time that was charged once is not charged again"


def test_replayed_call_with_other_result_warns_and_uses_first_answer(tmp_path: Path) -> None:
    run_conversation(tmp_path, kill_at_turn=5, number=1)
    report = run_conversation(tmp_path, number=3)
    assert report["tool_results"][-1] == "[exit code 1]"
    (note,) = report["notes"]
    assert "turn-4/tool-2: bash was repeated in a new sandbox and ended differently" in note
    assert "exit code 3; before: exit code 1" in note
    assert report["status"] == "done"
