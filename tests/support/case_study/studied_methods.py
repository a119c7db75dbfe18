"""A run of SWE-Refactor with a developer and a reviewer, made by hand."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from codetaste.swe_refactor.report.trials_file import write_trials
from support.case_study.studied_run import StudiedRun
from support.case_study.study_models import PATH
from support.flows.tiny_benchmark import Bench, Workspace
from support.site.journals import SESSION, ended, job, write_journal
from support.source.repositories import make_repository
from support.swe_refactor.documents import document
from support.swe_refactor.trial_rows import trial_row

BEFORE, AFTER = "package p;\nclass A {\n}\n", "package p;\nclass A {\n  int added;\n}\n"
STRATEGIES = ("simple", "multi-agent")


def make_studied_methods(folder: Path, bench: Bench) -> StudiedRun:
    """Make a run with the trials of two strategies on one instance, as ``codetaste run`` leaves them."""
    made = StudiedRun(bench, Workspace(folder, folder / "cache", folder / "config.toml"))
    repository = make_repository(folder / "clone")
    repository.commit({PATH.encode(): BEFORE.encode()})
    commit = repository.commit({PATH.encode(): AFTER.encode()})
    instances = folder / "instances.json"
    instances.write_text(json.dumps([document(uniqueId="i1", commitId=commit)]))
    stored = {"files": {PATH: store(made.out, AFTER)}, "text": store(made.out, "the answer")}
    keys = [f"answer/{name}/m/i1" for name in STRATEGIES]
    values = [ended(key, value={**stored, "problem": None, "details": {}}) for key in keys]
    write_journal(made.out, [SESSION, *map(job, keys), *values])
    write_trials(
        made.out / "swe_refactor/trials.jsonl", [trial_row(strategy=name, run="r") for name in STRATEGIES]
    )
    review = {"type": "call", "id": "1", "name": "review", "arguments": {"verdict": "accept"}}
    lines: list[dict[str, Any]] = [
        {"model": "m", "system": "s", "tools": ["review"]},
        {"role": "assistant", "content": [{"type": "text", "text": "It is fine."}, review]},
    ]
    for name in STRATEGIES:
        path = made.out / f"transcripts/answer/{name}/m/i1.review-1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    paths = {"instances": str(instances), "repositories": [str(folder / "clone")]}
    config = {"benchmark": {"path": str(made.out / "benchmark")}, "swe_refactor": paths}
    (made.out / "config.json").write_text(json.dumps(config))
    made.write_config("methods")
    return made


def store(run: Path, text: str) -> str:
    """Store a text by its hash, as a run does."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    path = run / "blobs" / digest[:2] / digest
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return digest
