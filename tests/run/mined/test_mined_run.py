"""A run with [mine]: from commits to a checked benchmark, also killed and continued."""

from __future__ import annotations

import json
import os
import random
import time
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import QUICKSTART, CommandResult, Workspace

EXAMPLE = QUICKSTART.with_name("mine-local.toml")
SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
pytestmark = pytest.mark.heavy


def products(workspace: Workspace) -> dict[str, bytes]:
    """The files of the benchmark and the discovered rules, by path."""
    roots = [workspace.out / name for name in ("benchmark", "describe", "discover")]
    files = [path for root in roots for path in sorted(root.rglob("*")) if path.is_file()]
    return {str(path.relative_to(workspace.out)): path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def mined(tmp_path_factory: pytest.TempPathFactory, bubblewrap: Path) -> tuple[Workspace, CommandResult]:
    folder = tmp_path_factory.mktemp("mined")
    workspace = Workspace(folder, folder / "cache", EXAMPLE, name="mine-local")
    return workspace, workspace.run("--json")


def check(workspace: Workspace, result: CommandResult) -> None:
    assert result.code == 0, result.err
    data = result.json
    (name,) = data["instances"]
    assert data["candidates"] == [name]
    assert data["dropped"] == {}
    yields = {each["step"]: (each["entered"], each["removed"], each["pending"]) for each in data["steps"]}
    steps = ("keywords", "prefilter", "scoring", "choice of instances", "describe", "discover", "check")
    assert yields == dict.fromkeys(steps, (1, 0, 0))
    assert json.loads((workspace.out / "mining/steps.json").read_text())["steps"] == data["steps"]
    spent = sum((Decimal(each["cost_usd"]) for each in data["steps"]), Decimal(0))
    # A call that was under way when the run was killed may have been billed, and counts.
    assert spent >= sum((Decimal(line["cost_usd"]) for line in workspace.ledger("scripted")), Decimal(0))
    tiny_benchmark.assert_no_call_billed_twice(workspace.ledger("scripted"))


def test_releases_become_a_checked_benchmark(mined: tuple[Workspace, CommandResult]) -> None:
    workspace, result = mined
    check(workspace, result)
    scores = list((workspace.out / "mining/releases/candidates.csv").read_text().splitlines())
    assert len(scores) == 2
    checked = workspace.cli(
        "benchmark", "check", "--benchmark", str(workspace.out / "discover/scripted"), "--json"
    )
    assert checked.code == 0, checked.out
    again = workspace.run("--json")
    check(workspace, again)
    assert sum(line["event"] == "started" for line in workspace.journal()) > 0
    explained = workspace.cli(
        *("mine", "explain", "pluggy/pluggy", scores[1].split(",")[3], "--config", str(EXAMPLE), "--json"),
        *("--repos", str(workspace.out / "mining/releases/clones")),
    )
    assert explained.code == 0
    filters = {each["filter"]: each["passed"] for each in explained.json["filters"]}
    assert {"stars", "files", "strong_minus", "ratio", "reachable", "code_edits"} <= set(filters)


@pytest.mark.timeout(900)
def test_killed_ten_times_it_makes_the_same_benchmark(
    tmp_path: Path, mined: tuple[Workspace, CommandResult]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    whole, rng = mined[0], random.Random(SEED)
    workspace = Workspace(tmp_path, tmp_path / "cache", EXAMPLE, name="mine-local")
    steps = tiny_benchmark.count_steps(whole.journal())
    for number in range(10):
        process = workspace.start("--json")
        target = steps / 10 * rng.uniform(number, number + 1)
        if target < 1:
            time.sleep(rng.uniform(0.05, 1.5))
        else:
            tiny_benchmark.wait_for_progress(process, workspace.out, target)
            time.sleep(rng.uniform(0, 0.25))
        assert tiny_benchmark.kill(process) is not None
    result = workspace.run("--json")
    check(workspace, result)
    assert set(products(workspace)) == set(products(whole))
    assert workspace.rules() == whole.rules()
    billed = sum((Decimal(line["cost_usd"]) for line in workspace.ledger("scripted")), Decimal(0))
    assert billed == sum((Decimal(line["cost_usd"]) for line in whole.ledger("scripted")), Decimal(0))
