"""Mutated input files, given to every command: no traceback, no hang, documented exit codes, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.flows.tiny_benchmark import MODELS, PRICE, Bench, make_workspace

FUZZER = Path(__file__).parents[1] / "support" / "cli" / "fuzz.py"


def fuzz(folder: Path, *, processes: int, inputs: int) -> None:
    """Give ``inputs`` mutated files to commands, in ``processes`` workers, each with its own seeds."""
    bench = Bench(folder)
    row = bench.add()
    (bench.root / "assets/default.semgrepignore").write_text("docs/\n*.md\n!README.md\n")
    cache = folder.parent / "cache"
    folder.joinpath("models.py").write_bytes(MODELS.read_bytes())
    table = f'provider = "scripted"\nmodel = "models.py:quick"\nprice = {PRICE}\n'
    recorded = f'{table}cassette = "recorded.jsonl"\nmode = "record-missing"\n'
    workspace = make_workspace(folder, bench, cache, {"m": recorded}, more="[evaluate]\n")
    done = workspace.run()
    assert done.code == 0, done.err
    add_unfinished_run(folder)
    rules = bench.root / "assets/rules" / row.path
    rules.mkdir(parents=True)
    for path in (folder / "runs/r/discover").rglob("rules_*.yml"):
        shutil.copy(path, rules)
    each = inputs // processes
    workers = []
    for number in range(processes):
        own = folder.parent / str(number) / "work"
        shutil.copytree(folder, own)
        for config in own.glob("*.toml"):
            config.write_text(config.read_text().replace(str(folder), str(own)))
        command = [sys.executable, str(FUZZER), str(own), str(number * each), str(each)]
        env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env))
    for worker in workers:
        out, _ = worker.communicate()
        report = json.loads(out)
        assert report["inputs"] == each
        assert report["faults"] == []


def add_unfinished_run(folder: Path) -> None:
    """Copy the run and its config as "u", without the second half of the journal."""
    config = (folder / "config.toml").read_text()
    folder.joinpath("unfinished.toml").write_text(config.replace('name = "r"', 'name = "u"'))
    shutil.copytree(folder / "runs/r", folder / "runs/u")
    journal = folder / "runs/u/journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: len(lines) // 2]))


@pytest.mark.heavy
def test_two_hundred_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path / "made", processes=2, inputs=200)


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_twenty_thousand_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    fuzz(tmp_path / "made", processes=2, inputs=20_000)
