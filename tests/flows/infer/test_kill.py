"""``kill -9`` between and within the steps of trials: nothing is bought twice, all ends as undisturbed."""

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
from support.flows.tiny_benchmark import Ended, Place, Tiny
from support.flows.trial_runs import ALL, products, trial_place

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


@pytest.fixture(scope="module")
def undisturbed_trials(
    tmp_path_factory: pytest.TempPathFactory, alpha: Tiny, bubblewrap: Path
) -> tuple[Place, Ended]:
    where = trial_place(tmp_path_factory.mktemp("undisturbed"), alpha, ALL, coder="slowly")
    return where, where.run("--json")


@pytest.mark.heavy
@pytest.mark.timeout(240)
def test_trials_killed_ten_times_give_same_outputs_and_cost(
    tmp_path: Path, alpha: Tiny, undisturbed_trials: tuple[Place, Ended]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    other, undisturbed = undisturbed_trials
    assert undisturbed.code == 0, undisturbed.err
    where = trial_place(tmp_path, alpha, ALL, coder="slowly")
    done = run_with_kills(where, 10, tiny_benchmark.progress(other.journal()), random.Random(SEED))
    assert done.code == 0, done.err
    lines = where.journal()
    tiny_benchmark.assert_no_finished_job_ran_twice(lines)
    billed = Fraction(0)
    for model in ("m", "judge"):
        tiny_benchmark.assert_nothing_bought_twice(where.ledger(model))
        assert len(where.ledger(model)) == len(other.ledger(model))
        billed += sum((Fraction(line["cost_usd"]) for line in where.ledger(model)), Fraction(0))
    node = ("infer", f"a/open/multiplan/{alpha.row.id}")
    books = tiny_benchmark.folded(lines, {(): Decimal(20), node: Decimal(2)})
    assert Fraction(books.total("settled")) == billed > 0
    assert books.total("reserved", "unknown") == 0
    assert products(where) == products(other)
    assert not [path for path in (where.out / ".sandboxes").rglob("*") if path.is_file()]
    assert list(tiny_benchmark.left_over(str(where.out))) == []


def test_a_kill_between_two_steps_buys_no_plan_twice(tmp_path: Path, alpha: Tiny, bubblewrap: Path) -> None:
    where = trial_place(tmp_path, alpha, ("open/multiplan",), coder="slowly")
    trial = f"infer/a/open/multiplan/{alpha.row.id}"
    for step in ("plan", "judge"):
        process = where.start("--json")
        while f"{trial}/{step}" not in _ended(where) and process.poll() is None:
            time.sleep(0.01)
        tiny_benchmark.kill(process)
    done = where.run("--json")
    assert done.code == 0, done.err
    starts = [line["key"] for line in where.journal() if line["event"] == "started"]
    assert starts.count(f"{trial}/plan") == 1
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("m"))
    tiny_benchmark.assert_nothing_bought_twice(where.ledger("judge"))


def _ended(where: Place) -> set[str]:
    return {line["key"] for line in where.journal() if line["event"] == "ended"}
