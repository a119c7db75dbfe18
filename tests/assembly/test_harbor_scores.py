"""The exported verifier and codetaste's own evaluation agree on IFR where no patch evades the rules."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path

import anyio
import pytest

from codetaste.benchmark.benchmark import open_benchmark
from codetaste.errors import ToolMissing
from codetaste.evaluation.evaluate import Evaluation, evaluate
from codetaste.evaluation.metrics import ifr
from codetaste.evaluation.rule_set import read_rule_set
from codetaste.rules.engine.install import RuleEngine, find_rule_engine
from codetaste.rules.engine.opengrep import OpenGrep
from codetaste.rules.scan.full import FullScanner
from codetaste.source.checkout import checkout_trees
from support.assembly.harbor_trial import HarborMachine
from support.assembly.product_run import make_product_run
from support.cli import invoke

FILES = ("pack/store.py", "pack/one.py", "pack/two.py")
SUBSETS = [files for count in range(4) for files in combinations(FILES, count)]
OTHERS = ["echo 'x = fetch_new(1)' > new.py", "git rm -q pack/one.py", "echo 'class ((' >> pack/store.py"]


async def own_evaluation(
    engine: RuleEngine, root: Path, repos: Path, patch: bytes, scratch: Path
) -> Evaluation:
    benchmark = open_benchmark(root, repos=repos)
    (instance,) = benchmark.instances
    trees = await checkout_trees(benchmark.origin(instance), scratch / "cache")
    rules = read_rule_set(benchmark, instance)
    scanner = FullScanner(OpenGrep(engine), benchmark.ignore_text())
    (scratch / "evaluate").mkdir(exist_ok=True)
    return await evaluate(rules, trees.base, patch, scanner, scratch=scratch / "evaluate")


@pytest.mark.heavy
def test_verifier_gives_the_rate_of_the_evaluation(
    tmp_path: Path,
    bubblewrap: Path,
    require: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require("git")
    try:
        engine = anyio.run(find_rule_engine)
    except ToolMissing as error:
        pytest.skip(str(error))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run = make_product_run(tmp_path)
    run.describe()
    run.discover()
    run.merge_products(Path("b"))
    options = ("--benchmark", "b", "--repos", run.bench.repos, "--rules-only", "--image", "i", "--json")
    data = json.loads(invoke.codetaste(capsys, "benchmark", "export", "--harbor", "tasks", *options))
    task = Path(data["tasks"][0]["folder"])
    machine = HarborMachine(bubblewrap, engine, tmp_path / "trials")
    acts = [
        f"git apply {' '.join(f'--include={each}' for each in files)} /solution/golden.diff"
        for files in SUBSETS[1:]
    ]
    for act in (":", *acts, *OTHERS):
        trial = machine.run(task, act)
        assert trial.rewards is not None, trial.log
        submission = (machine.made[-1] / "artifacts/submission.diff").read_bytes() or b"\n"
        own = anyio.run(partial(own_evaluation, engine, Path("b"), run.bench.repos, submission, tmp_path))
        assert own.rule_counts is not None, (act, own.reason)
        assert trial.rewards["ifr"] == pytest.approx(ifr(own.rule_counts)), act
        assert set(trial.details["unmet"]) == {*own.unmet_additive, *own.unmet_reductive}, act
