"""A conversation that was killed is taken up in a new box, whose files are as the model left them."""

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
SLEPT_S = 1.0
"""How long the one slow command takes, each time."""


@pytest.fixture(autouse=True)
def contained(require: Callable[..., None]) -> None:
    try:
        choose_engine("bubblewrap")
    except CodetasteError as error:
        require("bwrap", ok=False, reason=str(error))


def talk(folder: Path, *, dies_at: int = 0, number: int = 1) -> dict[str, Any]:
    command = [sys.executable, str(SCRIPT), str(folder), str(dies_at), str(number)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == (-signal.SIGKILL if dies_at else 0), done.stderr
    return {} if dies_at else json.loads(done.stdout)


def bought(folder: Path) -> int:
    return len((folder / "ledger.jsonl").read_text().splitlines())


@pytest.mark.heavy
def test_resume_after_kill_replays_calls_and_buys_no_reply_twice(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    expected = talk(whole)
    assert (expected["status"], expected["end"], expected["notes"]) == ("done", "finished", [])
    assert expected["calls"] == 9
    for turn in (2, 4, 5):
        talk(killed, dies_at=turn)
        assert bought(killed) == turn - 1
    found = talk(killed)
    assert (found["status"], found["end"], found["notes"]) == ("done", "finished", [])
    assert found["left"] == expected["left"]
    assert found["told"] == expected["told"]
    assert found["asked"] == [5]
    assert found["calls"] == 1, "only the last call was made for the first time"
    assert bought(killed) == bought(whole) == 5
    waited_s = found["wall_s"] - found["worked_s"]
    assert waited_s >= SLEPT_S, "time that was charged once is not charged again"


def test_replayed_call_with_other_result_warns_and_uses_first_answer(tmp_path: Path) -> None:
    talk(tmp_path, dies_at=5, number=1)
    found = talk(tmp_path, number=3)
    assert found["told"][-1] == "[exit code 1]"
    (note,) = found["notes"]
    assert "turn-4/tool-2: bash was repeated in a new sandbox and ended differently" in note
    assert "exit code 3; before: exit code 1" in note
    assert found["status"] == "done"
