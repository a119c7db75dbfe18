"""``kill -9`` in the middle of requests through the gateway, followed by the same command."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.gateway import killed_run
from support.llm.bill_audit import audit_run
from support.llm.provider import server as provider
from support.llm.provider.faults import billed_and_late


def run_with_kills(folder: Path, kills: int, rng: random.Random, *url: str) -> tuple[Decimal, Decimal]:
    """Kill the run at random moments after a reservation, then let it finish; return settled and unknown."""
    program = [sys.executable, "-W", "error", killed_run.__file__, str(folder), *url]
    journal = folder / "run" / "journal.jsonl"
    for _ in range(kills):
        process = subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        before = _count_reservations(journal)
        while process.poll() is None and _count_reservations(journal) <= before:
            time.sleep(0.005)
        time.sleep(rng.uniform(0, 0.15))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    settled, unknown = done.stdout.split()
    return Decimal(settled), Decimal(unknown)


def _count_reservations(journal: Path) -> int:
    return journal.read_text().count('"reserved"') if journal.exists() else 0


def read_complete_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.endswith("}")]


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_scripted_calls_are_settled_from_ledger_after_kill(
    tmp_path: Path,
) -> None:
    settled, unknown = run_with_kills(tmp_path, 3, random.Random(1))
    calls = [line["call"] for line in read_complete_lines(tmp_path / "expensive.ledger.jsonl")]
    billed = sum(
        Decimal(line["cost_usd"]) for line in read_complete_lines(tmp_path / "expensive.ledger.jsonl")
    )
    assert settled == billed <= killed_run.BUDGET
    assert unknown == 0
    assert len(calls) == len(set(calls)) >= killed_run.JOBS * killed_run.TURNS
    assert not (tmp_path / "run" / "gateway").exists()


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_provider_calls_stay_charged_after_kill_and_are_repeated(tmp_path: Path) -> None:
    with provider.serving() as server:

        async def reply(exchange: Any) -> None:
            await billed_and_late(exchange, random.Random(exchange.number))

        server.default = reply
        spent = run_with_kills(tmp_path, 1, random.Random(1), server.url)
        audit = audit_run(tmp_path / "run", server.bill, {(): killed_run.BUDGET})
    assert spent == (audit.settled, audit.unknown)
    assert audit.states["unknown"] + audit.states["reserved"] > 0
    assert audit.states["settled"] >= killed_run.JOBS * killed_run.TURNS
    attempts = [
        line for line in read_complete_lines(tmp_path / "run" / "job-0.jsonl") if "transcript" in line
    ]
    assert attempts[-1]["attempt"] == 2
