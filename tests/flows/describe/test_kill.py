"""``kill -9`` at random moments, each followed by a resume: the same descriptions, no reply paid twice."""

from __future__ import annotations

import os
import random
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.description_models import INSTRUCTED, OPEN
from support.flows.description_runs import describe_workspace, description, undescribed_bench

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
STEPS = 2 + 6 * 2 + 3
"""Six replies, each reserved and settled, and the ends of three jobs, roughly."""


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_killed_run_gives_the_same_descriptions_and_pays_no_reply_twice(tmp_path: Path, tools: None) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    rng = random.Random(SEED)
    bench, row = undescribed_bench(tmp_path)
    workspace = describe_workspace(tmp_path / "work", bench, tmp_path / "cache", "slowly")
    kills = 8
    for number in range(kills):
        process = workspace.start("--json")
        target = STEPS / kills * rng.uniform(number, number + 1)
        tiny_benchmark.wait_for_progress(process, workspace.out, target)
        tiny_benchmark.kill(process)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    product = workspace.out / "describe"
    assert description(product, row, "description.md") == INSTRUCTED
    assert description(product, row) == f"{OPEN}\n"
    lines, ledger = workspace.journal(), workspace.ledger("m")
    tiny_benchmark.assert_no_finished_job_ran_twice(lines)
    tiny_benchmark.assert_no_call_billed_twice(ledger)
    assert len(ledger) == 6
    accounts = tiny_benchmark.fold_journal(lines, {("describe", row.id): Decimal("1.0")})
    assert accounts.total("reserved", "unknown") == 0
    assert accounts.total("settled") == sum(Decimal(line["cost_usd"]) for line in ledger)
