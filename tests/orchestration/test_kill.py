"""``kill -9`` at any moment: no finished job is repeated, no reply is paid twice, the bill is covered."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.orchestration.journal.history import History
from support.orchestration.journal_lines import read_journal

PROGRAM = Path(__file__).parents[1] / "support" / "orchestration" / "killed_run.py"
JOBS, TURNS, PRICE, BUDGET = 6, 4, Decimal("0.05"), Decimal("1.50")


def start(directory: Path, bill: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(directory), str(bill)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def calls(bill: Path) -> list[str]:
    return [json.loads(line)["call"] for line in bill.read_text().splitlines()] if bill.exists() else []


def check_costs(directory: Path, bill: Path) -> None:
    """Check that the journal's charges cover the bill, and that no effect was billed twice."""
    billed = calls(bill)
    effects = [call.rpartition("#")[0] for call in billed]
    assert len(set(effects)) == len(effects), "a reply was paid twice"
    lines = list(read_journal(directory / "journal.jsonl"))
    prior = History(lines).prior_charges().values()
    charged = sum((at.settled.usd + at.unknown.usd for at in prior), Decimal(0))
    assert PRICE * len(billed) <= charged <= BUDGET
    done: set[str] = set()
    for line in lines:
        if line["event"] == "ended" and line["status"] == "done":
            assert line["key"] not in done
            done.add(line["key"])
        if line["event"] == "started":
            assert line["key"] not in done, "a finished job ran again"


def kill_repeatedly(tmp_path: Path, kills: int, rng: random.Random) -> None:
    directory, bill = tmp_path / "run", tmp_path / "bill.jsonl"
    for _ in range(kills):
        with start(directory, bill) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.random() * 0.12)
            process.kill()
        if (directory / "journal.jsonl").exists():
            check_costs(directory, bill)
    with start(directory, bill) as process:
        out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    replies = [f"reply to turn-{number}" for number in range(TURNS)]
    outcomes = json.loads(out.splitlines()[-1])
    assert outcomes == {f"job-{number}": ["done", replies] for number in range(JOBS)}
    check_costs(directory, bill)
    assert len(calls(bill)) == JOBS * TURNS
    prior = History(read_journal(directory / "journal.jsonl")).prior_charges().values()
    assert sum((at.settled.usd for at in prior), Decimal(0)) == PRICE * JOBS * TURNS


def test_run_killed_at_random_moments_ends_like_undisturbed(tmp_path: Path) -> None:
    kill_repeatedly(tmp_path, 8, random.Random(7))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(10))
def test_run_killed_often_at_random_moments_ends_like_undisturbed(tmp_path: Path, seed: int) -> None:
    kill_repeatedly(tmp_path, 25, random.Random(seed))
