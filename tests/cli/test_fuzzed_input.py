"""Mutated input files, given to every command: no traceback, no hang, documented exit codes, nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from codetaste.swe_refactor.dataset.instance import RefactoringInstance
from codetaste.swe_refactor.dataset.layout import FOLDER, TRIALS_FILE
from codetaste.swe_refactor.dataset.review import InstanceVerdict, new_instance_review
from codetaste.swe_refactor.report.trials_file import write_trials
from codetaste.swe_refactor.score.answer_score import AnswerScore
from codetaste.swe_refactor.score.check import CheckOutcome, RefactoringCheck
from codetaste.swe_refactor.score.tested_answer import TestedAnswer, TestOutcome
from support.flows.tiny_benchmark import MODELS, PRICE, Bench, make_workspace
from support.swe_refactor.documents import COMMIT, document
from support.swe_refactor.trial_rows import trial_row

FUZZER = Path(__file__).parents[1] / "support" / "cli" / "fuzz.py"


TOOL = '''
from codetaste.agent.tool import tool


@tool
async def count(context, text: str) -> str:
    """Count characters.

    Args:
        text: What to count.
    """
    return str(len(text))
'''


def interrupt(run: Path) -> None:
    """Make a finished run what it was in the middle of its work, as after a kill."""
    journal = run / "journal.jsonl"
    lines = journal.read_text().splitlines(keepends=True)
    whole = [json.loads(line) for line in lines]
    calls = [at for at, line in enumerate(whole) if line["event"] == "settled"]
    end = calls[len(calls) // 2]
    journal.write_text("".join(lines[:end]))
    journalled = {line.get("call") for line in whole[:end]}
    for ledger in (run / "models").glob("*.jsonl"):
        entries = ledger.read_text().splitlines(keepends=True)
        ledger.write_text("".join(each for each in entries if json.loads(each)["call"] in journalled))


def write_reviewed_instances(path: Path) -> None:
    """Write instances of SWE-Refactor, and beside them what two reviewers decided about them."""
    documents = [document(uniqueId=f"{COMMIT}_{number}") for number in range(4)]
    path.write_text(json.dumps(documents, indent=4))
    lines: list[dict[str, object]] = [{"seed": 7, "size": 3, "by": "Ann", "at": "2026-01-31T12:00:00.000Z"}]
    for number, each in enumerate(documents):
        instance = RefactoringInstance.from_document(each)
        for by, verdict in (("Ann", "correct"), ("Bea", ("wrong", "unsure")[number % 2])):
            made = new_instance_review(instance, InstanceVerdict(verdict), "a note", by)
            lines.append(asdict(made))
    (path.parent / "pure.reviews.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in lines))


def write_trials_of(run: Path) -> None:
    """Write trials of SWE-Refactor: three models at the instances of ``write_reviewed_instances``."""
    solved = AnswerScore(None, TestedAnswer(TestOutcome.PASSED), RefactoringCheck(CheckOutcome.VERIFIED))
    rows = [
        trial_row(success=number == 3, model=model, instance=f"{COMMIT}_{number}")
        for model in ("m", "mm", "=1+1")
        for number in range(4)
    ]
    rows = [row.with_score(solved) if row.success else row for row in rows]
    write_trials(run / FOLDER / TRIALS_FILE, rows)


def fuzz(
    folder: Path, *, processes: int, inputs: int, suffixes: tuple[str, ...] = ()
) -> list[tuple[int, list[object]]]:
    """Give ``inputs`` mutated files to commands, in ``processes`` workers, each with its own seeds.

    Returns for each worker how many inputs all would be at its number, and the faults that it found.
    They are those of a benchmark, of a finished run, and of an interrupted one that replays a cassette.
    """
    bench = Bench(folder)
    row = bench.add()
    (bench.root / "assets/default.semgrepignore").write_text("docs/\n*.md\n!README.md\n")
    cache = folder.parent / "cache"
    folder.mkdir(exist_ok=True)
    shutil.copy(MODELS, folder / "play.py")
    write_reviewed_instances(folder / "pure.json")
    write_trials_of(folder / "trials")
    (folder / "tools.py").write_text(TOOL)
    tools = [f"codetaste.agent.rule_tools:{name}" for name in ("bash_explore", "register", "finish")]
    discover = f"budget_usd = 1.0\ntools = {json.dumps([*tools, 'tools.py:count'])}"
    model = f'provider = "scripted"\nmodel = "play.py:quick"\nprice = {PRICE}\n'
    recording = {"c": f'{model}cassette = "tape.jsonl"\nmode = "record"\n'}
    replay = make_workspace(folder, bench, cache, recording, discover=discover)
    replay.config.write_text(replay.config.read_text().replace('name = "r"', 'name = "p"'))
    recorded = replay.run()
    assert recorded.code == 0, recorded.err
    replayed = replay.config.read_text().replace('"record"', '"replay"')
    (folder / "replay.toml").write_text(replayed)
    interrupt(folder / "runs/p")
    models = {"m": model}
    workspace = make_workspace(folder, bench, cache, models, discover=discover, more="[evaluate]\n")
    done = workspace.run()
    assert done.code == 0, done.err
    rules = bench.root / "assets/rules" / row.path
    rules.mkdir(parents=True)
    for path in (folder / "runs/r/discover").rglob("rules_*.yml"):
        shutil.copy(path, rules)
    shutil.rmtree(folder / "__pycache__", ignore_errors=True)
    each = inputs // processes
    workers = []
    for number in range(processes):
        own = folder.parent / str(number) / "work"
        shutil.copytree(folder, own)
        for config in own.glob("*.toml"):
            config.write_text(config.read_text().replace(str(folder), str(own)))
        command = [sys.executable, str(FUZZER), str(own), str(number * each), str(each), *suffixes]
        env = {**os.environ, "XDG_CACHE_HOME": str(cache)}
        workers.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env))
    reports = [json.loads(worker.communicate()[0]) for worker in workers]
    return [(report["inputs"] * processes, report["faults"]) for report in reports]


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_hundred_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    assert fuzz(tmp_path / "made", processes=2, inputs=100) == [(100, [])] * 2


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_twenty_mutated_programs_and_records_do_no_harm(tmp_path: Path) -> None:
    found = fuzz(tmp_path / "made", processes=2, inputs=20, suffixes=(".py", ".jsonl"))
    assert found == [(20, [])] * 2


@pytest.mark.slow
@pytest.mark.timeout(5400)
def test_twenty_thousand_mutated_inputs_do_no_harm(tmp_path: Path) -> None:
    assert fuzz(tmp_path / "made", processes=2, inputs=20_000) == [(20_000, [])] * 2
