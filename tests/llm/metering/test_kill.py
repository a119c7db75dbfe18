"""A run that is killed with SIGKILL during paid calls is resumed by the same command."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from codetaste.llm.codec import reply_from_json
from support.llm import killed_run


def start(folder: Path, provider: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-W", "error", killed_run.__file__, str(folder), provider]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run_with_kills(folder: Path, provider: str, kills: int, rng: random.Random) -> tuple[Decimal, Decimal]:
    """Kill the run at random moments while it works, then let it end; return settled and unknown."""
    for _ in range(kills):
        process = start(folder, provider)
        journal = folder / "run" / "journal.jsonl"
        before = journal.stat().st_size if journal.exists() else 0
        while process.poll() is None and (not journal.exists() or journal.stat().st_size < before + 400):
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.12))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    process = start(folder, provider)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    settled, unknown = out.split()
    return Decimal(settled), Decimal(unknown)


def ledger(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "record" / "m.ledger.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]


@pytest.mark.heavy
@pytest.mark.timeout(300)
@pytest.mark.parametrize("provider", ["scripted", "record", "record-missing"])
def test_no_call_is_paid_twice_and_journal_equals_bill(tmp_path: Path, provider: str) -> None:
    settled, unknown = run_with_kills(tmp_path, provider, 6, random.Random(provider))
    bought = ledger(tmp_path)
    effects = [line["call"].rpartition("#")[0] for line in bought]
    assert len(effects) == len(set(effects)) == killed_run.JOBS * killed_run.TURNS
    billed = sum((Fraction(line["cost_usd"]) for line in bought), Fraction(0))
    assert Fraction(settled) == billed <= Fraction(killed_run.BUDGET)
    assert unknown == 0
    third = [reply_from_json(line["reply"]) for line in bought if "/turn-3#" in line["call"]]
    assert sum("é" * 2000 in reply.message.text for reply in third) == killed_run.JOBS


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_killed_replay_has_costs_of_recorded_run(tmp_path: Path) -> None:
    recorded, _ = run_with_kills(tmp_path, "record", 0, random.Random(0))
    (tmp_path / "run").rename(tmp_path / "recorded")
    (tmp_path / "record").rename(tmp_path / "recorded-by")
    settled, unknown = run_with_kills(tmp_path, "replay", 5, random.Random(5))
    assert settled == recorded
    assert unknown == 0
    assert not (tmp_path / "record" / "m.ledger.jsonl").exists()
