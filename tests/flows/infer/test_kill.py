"""``kill -9`` between and within steps of trials: no call is billed twice, and the outputs are equal."""

from __future__ import annotations

import os
import random
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest

from flows.discover.test_kill import run_with_kills
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.flows.trial_runs import ALL, make_trial_workspace, read_products

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture(scope="module")
def uninterrupted_trials(
    tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark, bubblewrap: Path
) -> tuple[Workspace, CommandResult]:
    workspace = make_trial_workspace(tmp_path_factory.mktemp("uninterrupted"), alpha, ALL, coder="slowly")
    return workspace, workspace.run("--json")


@pytest.mark.heavy
@pytest.mark.timeout(240)
def test_trials_killed_ten_times_give_same_outputs_and_cost(
    tmp_path: Path, alpha: TinyBenchmark, uninterrupted_trials: tuple[Workspace, CommandResult]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    uninterrupted, uninterrupted_result = uninterrupted_trials
    assert uninterrupted_result.code == 0, uninterrupted_result.err
    workspace = make_trial_workspace(tmp_path, alpha, ALL, coder="slowly")
    result = run_with_kills(
        workspace, 10, tiny_benchmark.count_steps(uninterrupted.journal()), random.Random(SEED)
    )
    assert result.code == 0, result.err
    lines = workspace.journal()
    tiny_benchmark.assert_no_finished_job_ran_twice(lines)
    billed = Fraction(0)
    for model in ("m", "judge"):
        tiny_benchmark.assert_no_call_billed_twice(workspace.ledger(model))
        assert len(workspace.ledger(model)) == len(uninterrupted.ledger(model))
        billed += sum((Fraction(line["cost_usd"]) for line in workspace.ledger(model)), Fraction(0))
    node = ("infer", f"a/open/multiplan/{alpha.row.id}")
    accounts = tiny_benchmark.fold_journal(lines, {(): Decimal(20), node: Decimal(2)})
    assert Fraction(accounts.total("settled")) == billed > 0
    assert accounts.total("reserved", "unknown") == 0
    assert read_products(workspace) == read_products(uninterrupted)
    assert not [path for path in (workspace.out / ".sandboxes").rglob("*") if path.is_file()]
    assert list(tiny_benchmark.leftover_processes(str(workspace.out))) == []


@pytest.mark.heavy
def test_kill_between_steps_repeats_no_plan(tmp_path: Path, alpha: TinyBenchmark, bubblewrap: Path) -> None:
    workspace = make_trial_workspace(tmp_path, alpha, ("open/multiplan",), coder="slowly")
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    for step in ("plan", "judge"):
        process = workspace.start("--json")
        while f"{trial}/{step}" not in ended_keys(workspace) and process.poll() is None:
            time.sleep(0.01)
        tiny_benchmark.kill(process)
    result = workspace.run("--json")
    assert result.code == 0, result.err
    starts = [line["key"] for line in workspace.journal() if line["event"] == "started"]
    assert starts.count(f"{trial}/plan") == 1
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("m"))
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("judge"))


def ended_keys(workspace: Workspace) -> set[str]:
    return {line["key"] for line in workspace.journal() if line["event"] == "ended"}
