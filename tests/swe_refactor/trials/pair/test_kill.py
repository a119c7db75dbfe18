"""``kill -9`` in the middle of rounds, each time followed by the same command: no reply is paid twice."""

from __future__ import annotations

import json
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from support.swe_refactor import pair_runs
from support.swe_refactor.pair_runs import slow_run

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
MOMENTS = (
    "round-1/developer/turn-1/tool-1",
    "round-1/evidence",
    "round-2/developer/turn-1/reply",
    "round-2/reviewer/turn-1/reply",
    "round-3/evidence",
)
"""Effects, after each of which the process is killed."""


def start(folder: Path) -> subprocess.Popen[str]:
    program = [sys.executable, "-W", "error", pair_runs.__file__, str(folder)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_killed_pair_goes_on_where_it_was(tmp_path: Path) -> None:
    for effect in MOMENTS:
        process = start(tmp_path)
        journal = tmp_path / "run" / "journal.jsonl"
        while process.poll() is None and not (journal.exists() and f'"{effect}"' in journal.read_text()):
            pass
        process.kill()
        process.communicate()
    process = start(tmp_path)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    settled, unknown, text = out.split(" ", 2)
    value = json.loads(text)
    assert (value["details"]["ended"], value["details"]["answer_of_round"]) == ("accepted", 3)
    assert value["turns"] == 6 + 3
    run = slow_run(tmp_path)
    effects = run.billed_effects()
    assert len(effects) == len(set(effects)) == 6 + 3
    assert (Decimal(settled) > 0, Decimal(unknown)) == (True, 0)
    assert [line["role"] for line in run.transcript("developer")[1:]] == ["user", "assistant"] * 6

    whole = slow_run(tmp_path / "whole")
    (tmp_path / "whole").mkdir()
    outcome = anyio.run(whole.session)
    assert outcome.value is not None
    assert {**value, "wall_s": 0} == {**outcome.value, "wall_s": 0}  # type: ignore[dict-item]
    assert Decimal(settled) == whole.spent.settled.usd
