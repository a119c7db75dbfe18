"""Runs of several benchmarks, or of none, read together."""

from __future__ import annotations

import json
from pathlib import Path

import codetaste
from codetaste.results.read import read_results
from codetaste.site.build import open_site
from codetaste.site.overview.instances import descriptions_of
from codetaste.swe_refactor.report.trials_file import write_trials
from support.site.synthetic import Size, write_results
from support.swe_refactor.trial_rows import trial_row

SMALL = Size(instances=2, agents=1, settings=1, lines=0.01, turns=1, rules=2)


def write_run(folder: Path, seed: int) -> Path:
    return write_results(folder, SMALL, seed)[1]


def test_runs_of_different_benchmarks_keep_their_instances(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, seed) for seed, name in enumerate("ab")]
    other = tmp_path / "other"  # such as a run of SWE-Refactor, whose benchmark was never made
    write_trials(other / "swe_refactor/trials.jsonl", [trial_row(run="other")])
    (other / "config.json").write_text(json.dumps({"benchmark": {"path": str(other / "benchmark")}}))
    loaded = codetaste.load(*runs, other)
    assert not [each for each in loaded.problems if "benchmark" in each.text]
    together = [trial for trial in loaded.trials if trial.benchmark == "codetaste"]
    alone = [trial for run in runs for trial in codetaste.load(run).trials]
    languages = {trial.instance: trial.language for trial in alone}
    assert "" not in languages.values()
    assert {trial.instance: trial.language for trial in together} == languages
    site = open_site(read_results([*runs, other]), "runs")
    assert all(descriptions_of(site, instance) for instance in languages)


def test_a_benchmark_that_is_gone_is_a_problem_of_its_run(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, seed) for seed, name in enumerate("ab")]
    config = {"benchmark": {"path": str(tmp_path / "gone")}}
    (runs[1] / "config.json").write_text(json.dumps(config))
    results = codetaste.load(*runs)
    [problem] = [each for each in results.problems if "cannot be opened" in each.text]
    assert problem.location == f"{runs[1]}: config.json"
    assert {bool(trial.language) for trial in results.trials} == {True, False}
