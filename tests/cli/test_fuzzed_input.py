"""Mutated input files, given to every command: no traceback, no hang, documented exit codes, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.flows.tiny_benchmark import Bench, make_workspace

FUZZER = Path(__file__).parents[1] / "support" / "cli" / "fuzz.py"


def fuzz(folder: Path, *, processes: int, inputs: int) -> None:
    """Give ``inputs`` mutated files to commands, in ``processes`` workers, each with its own seeds."""
    bench = Bench(folder)
    row = bench.add()
    (bench.root / "assets/default.semgrepignore").write_text("docs/\n*.md\n!README.md\n")
    cache = folder.parent / "cache"
    workspace = make_workspace(folder, bench, cache, {"m": "quick"}, more="[evaluate]\n")
    done = workspace.run()
    assert done.code == 0, done.err
    rules = bench.root / "assets/rules" / row.path
    rules.mkdir(parents=True)
    for path in (folder / "runs/r/discover").rglob("rules_*.yml"):
        shutil.copy(path, rules)
    each = inputs // processes
    workers = []
    for number in range(processes):
        own = folder.parent / str(number) / "work"
        shutil.copytree(folder, own)
        config = own / "config.toml"
        config.write_text(config.read_text().replace(str(folder), str(own)))
        command = [sys.executable, str(FUZZER), str(own), str(number * each), str(each)]
        env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env))
    for worker in workers:
        out, _ = worker.communicate()
        report = json.loads(out)
        assert report["inputs"] == each
        assert report["faults"] == []


@pytest.mark.heavy
def test_two_hundred_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path / "made", processes=2, inputs=200)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_twenty_thousand_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path / "made", processes=2, inputs=20_000)
