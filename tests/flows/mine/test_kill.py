"""A run that scores commits is killed at random moments and continued by the same command."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from support.mining import scoring_run
from support.mining.scoring_run import ScoringRun, make_records, slow_script


def start(folder: Path) -> subprocess.Popen[str]:
    program = [sys.executable, "-W", "error", scoring_run.__file__, str(folder)]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_with_kills(folder: Path, kills: int, rng: random.Random) -> tuple[Decimal, Decimal]:
    """Kill the run at random moments while it works, then let it end; return settled and unknown."""
    journal = folder / "journal.jsonl"
    for _ in range(kills):
        process = start(folder)
        before = journal.stat().st_size if journal.exists() else 0
        while process.poll() is None and (not journal.exists() or journal.stat().st_size < before + 400):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start(folder)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    settled, unknown = out.split()
    return Decimal(settled), Decimal(unknown)


@pytest.mark.heavy
@pytest.mark.parametrize("seed", [1, 2])
def test_no_reply_is_paid_twice(tmp_path: Path, seed: int) -> None:
    settled, unknown = run_with_kills(tmp_path, 6, random.Random(seed))
    run = ScoringRun(tmp_path, slow_script, make_records(12), {})
    effects = run.billed_effects()
    # Twelve messages, six diffs; the first replies to messages 0, 3, 6, 9 and to diffs 6, 9 are unusable.
    assert len(effects) == len(set(effects)) == 12 + 4 + 6 + 2
    assert Fraction(settled) == sum(Fraction(line["cost_usd"]) for line in run.bill())
    assert unknown == 0
    assert [each["repo"] for each in run.candidates()] == ["repo6", "repo7", "repo8"]
