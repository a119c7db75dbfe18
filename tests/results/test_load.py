"""Rows of trials and rules: their numbers are those of the files, summed by hand, and of the report."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.measures import IFR, PREC
from codetaste.report.statistics.view import aggregate_trials
from codetaste.results.load import Results, load
from codetaste.results.read import read_results
from codetaste.results.rows.rule import RuleVerdict
from codetaste.results.rows.trial import TrialResult
from support.site.synthetic import Size, write_results

SMALL = Size(instances=2, agents=2, settings=2, lines=0.01, rules=4, turns=1)


def files_of(run: Path) -> dict[tuple[str, ...], dict[str, Any]]:
    """Read the files of each trial by track, mode, "owner__repo-hash" and agent."""
    found = {}
    for path in sorted(run.glob("outputs/*/*/*/*/*/*/inference_metadata.json")):
        track, mode, owner, repo, commit, agent = path.parent.relative_to(run / "outputs").parts
        scores = path.parent / "evaluation/scores.json"
        found[track, mode, f"{owner}__{repo}-{commit}", agent] = {
            "metadata": json.loads(path.read_text()),
            "scores": json.loads(scores.read_text()) if scores.is_file() else None,
            "sarif": {
                name: json.loads((path.parent / f"evaluation/rules_{name}.sarif").read_text())
                for name in (("positive", "negative") if scores.is_file() else ())
            },
        }
    return found


def key(row: TrialResult | RuleVerdict) -> tuple[str, ...]:
    return (row.track or "", row.mode or "", row.instance, row.agent)


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_sums_over_rows_are_the_sums_over_the_files_and_means_those_of_the_report(seed: int) -> None:
    with TemporaryDirectory() as folder:
        _, run = write_results(Path(folder), SMALL, seed)
        results = load(run)
        files = files_of(run)
        assert {key(row) for row in results.trials} == set(files)
        by_trial = {key(row): row for row in results.trials}
        for trial, each in files.items():
            row, scores = by_trial[trial], each["scores"]
            assert row.cost_usd == each["metadata"]["cost_usd"]
            assert row.finish_reason == each["metadata"]["finish_reason"]
            if scores is None:
                assert (row.ifr, row.passed, row.tests_passed, row.strict_ifr) == (None, None, None, 0.0)
                assert row.outcome == "infrastructure_error"
                continue
            assert (row.ifr, row.ifr_plus, row.prec) == tuple(scores[n] for n in ("ifr", "ifr_plus", "prec"))
            assert (row.tests_passed, row.tests_failed) == (
                scores["tests"]["passed"],
                scores["tests"]["failed"],
            )
            assert (row.tests_min_passed, row.tests_max_failed) == (700, 2)
            assert row.edited == scores["added"] + scores["removed"]
        _check_rules(results, files)
        _check_means(run)
        costs = math.fsum(each["metadata"]["cost_usd"] for each in files.values())
        assert math.fsum(row.cost_usd or 0 for row in results.trials) == pytest.approx(costs)


def _check_rules(loaded: Results, files: dict[tuple[str, ...], dict[str, Any]]) -> None:
    """Compare the rows of rules with the SARIF results, counted by hand."""
    rows = defaultdict(list)
    for row in loaded.rules:
        rows[key(row)].append(row)
    for trial, each in files.items():
        if each["scores"] is None:
            assert trial not in rows
            continue
        for name, direction in (("positive", "additive"), ("negative", "reductive")):
            found = each["sarif"][name]["runs"][0]["results"]
            of_direction = [row for row in rows[trial] if row.direction == direction]
            assert sum(row.matches or 0 for row in of_direction) == len(found)
            matching = {result["ruleId"].removeprefix("rules.") for result in found}
            assert {row.rule for row in of_direction if row.matched} == matching
            for row in of_direction:
                own = [
                    r["locations"][0]["physicalLocation"] for r in found if r["ruleId"] == f"rules.{row.rule}"
                ]
                places = {(p["artifactLocation"]["uri"], p["region"]["startLine"]) for p in own}
                assert (row.lines, row.files) == (len(places), len({path for path, _ in places}))
        satisfied = [row.satisfied for row in rows[trial]]
        assert sum(map(bool, satisfied)) / len(satisfied) == pytest.approx(each["scores"]["ifr"])


def _check_means(run: Path) -> None:
    """Compare the strict and the published columns with the values that the report averages."""
    results = read_results([run])
    rows = Results(results).trials
    for aggregation in Aggregation:
        view = aggregate_trials(results.trials, aggregation)
        for agent, track_mode, records in view.groups():
            wanted = (agent, track_mode.track, track_mode.mode)
            group = [row for row in rows if (row.agent, row.track, row.mode) == wanted]
            assert len(group) == len(records)
            for measure in (IFR, PREC):
                values = [getattr(row, f"{aggregation}_{measure.name}") for row in group]
                known = [value for value in values if value is not None]
                assert known == list(view.sample(records, measure).values)


def test_several_runs_are_loaded_together_and_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_results(tmp_path / "runs", SMALL)
    write_results(tmp_path / "other", SMALL, seed=8)
    monkeypatch.chdir(tmp_path)
    results = load("synthetic", tmp_path / "other/synthetic")
    assert len(results.trials) == 2 * len(load("synthetic").trials)
    assert {row.run for row in results.trials} == {"synthetic", str(tmp_path / "other/synthetic")}
    assert repr(results).startswith("Results('runs/synthetic', ")


def test_guessed_names_are_those_that_the_description_lacks(tmp_path: Path) -> None:
    _, run = write_results(tmp_path, SMALL)
    rows = load(run).rules
    assert {row.names_are_guessed for row in rows if row.direction == "reductive"} == {None}
    assert {row.names_are_guessed for row in rows if row.direction == "additive"} <= {True, False}
    assert all(
        bool(row.guessed_names) is row.names_are_guessed for row in rows if row.direction == "additive"
    )


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        load(tmp_path / "missing")
    with pytest.raises(ConfigError, match="name at least one folder"):
        load()


def test_a_run_copied_without_its_journal_says_so(tmp_path: Path) -> None:
    run = tmp_path / "half"
    run.mkdir()
    (run / "config.json").write_text("{}")
    (run / "discover").mkdir()
    results = load(run)
    assert not results.trials
    assert ("missing", "journal.jsonl") in [(each.kind, each.location) for each in results.problems]


def test_damaged_files_are_problems_and_the_other_rows_come(tmp_path: Path) -> None:
    _, run = write_results(tmp_path, SMALL)
    scored = sorted(run.glob("outputs/*/*/*/*/*/*/evaluation"))
    (scored[0] / "scores.json").write_text('{"format": ')
    (scored[1] / "rules_positive.sarif").write_text('{"runs": 7}')
    (scored[2] / "rules_negative.sarif").unlink()
    (scored[3] / "rules_positive.yml").write_text("rules: [{id: x")
    (scored[4].parent / "inference_metadata.json").write_bytes(b"\xff\x00")
    (run / "case_studies").write_text("")
    results = load(run)
    whole = len(list(run.glob("outputs/*/*/*/*/*/*")))
    assert len(results.trials) == whole
    assert len({key(row) for row in results.rules}) >= len(scored) - 1
    listed = "\n".join(map(str, results.problems))
    assert "scores.json" in listed
    assert "rules_positive.sarif: is not SARIF" in listed
    assert "rules_positive.yml" in listed
    assert "case_studies: cannot be read" in listed
    unknown = [row for row in results.rules if row.direction == "reductive" and row.matches is None]
    assert unknown
    assert all(row.satisfied is not None for row in unknown), "scores.json says which rules match"
