"""Which trials are counted, how agents are named across runs, and which values enter a mean."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from codetaste.benchmark.layout import GOLDEN
from codetaste.evaluation.trials.records import TrialRecord, TrialStatus
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.measures import Measure
from codetaste.report.statistics.merge import merge_runs
from codetaste.report.statistics.view import aggregate_trials
from support.evaluation.records import ZERO_STATUSES, several, trial

STRICT, PUBLISHED = Aggregation.STRICT, Aggregation.PUBLISHED


def values(records: list[TrialRecord], measure: Measure, aggregation: Aggregation) -> list[float]:
    trials = merge_runs(records)
    return list(aggregate_trials(trials, aggregation).sample(trials.agents, measure).values)


@pytest.mark.parametrize("status", ZERO_STATUSES)
def test_failed_trial_scores_0_in_strict_and_is_dropped_in_published(status: TrialStatus) -> None:
    records = [*several("a", [1.0, 0.5]), trial("a", "o__x-1", status=status)]
    assert values(records, measures.IFR, STRICT) == [1.0, 0.5, 0.0]
    assert values(records, measures.IFR, PUBLISHED) == [1.0, 0.5]


@pytest.mark.parametrize("status", [TrialStatus.NOT_SCORED, TrialStatus.PARTIAL, TrialStatus.UNREADABLE])
def test_unknown_score_is_in_no_mean(status: TrialStatus) -> None:
    records = [*several("a", [1.0]), trial("a", "o__x-1", status=status)]
    assert values(records, measures.IFR, STRICT) == [1.0]
    trials = merge_runs(records)
    assert aggregate_trials(trials, STRICT).sample(trials.agents, measures.IFR).missing == 1


def test_pass_is_unknown_without_test_runs() -> None:
    untested = [*several("a", [1.0, 0.5]), trial("a", "o__x-1")]
    assert values(untested, measures.PASS, STRICT) == []
    assert values(untested, measures.ALIGNMENT, STRICT) == []
    tested = [*several("a", [1.0, 0.5], passed=True), trial("a", "o__x-1")]
    assert values(tested, measures.PASS, STRICT) == [1, 1, 0]
    assert values(tested, measures.ALIGNMENT, STRICT) == [1.0, 0.5, 0.0]


def test_all_failed_trials_have_ifr_zero_and_pass_unknown() -> None:
    failed = [trial("a", "o__x-1"), trial("a", "o__y-1", status=TrialStatus.DOES_NOT_APPLY)]
    references = [trial("golden_agent", each.instance, 1.0, passed=True) for each in failed]
    assert values([*failed, *references], measures.IFR, STRICT) == [0.0, 0.0]
    assert values([*failed, *references], measures.PREC, STRICT) == [0.0, 0.0]
    assert values([*failed, *references], measures.PASS, STRICT) == []
    assert values([*failed, *references], measures.IFR, PUBLISHED) == []
    waiting = trial("a", "o__z-1", status=TrialStatus.NOT_SCORED)
    assert values([*failed, waiting], measures.IFR, STRICT) == []


def test_failed_trial_of_instance_without_tests_has_no_pass_value() -> None:
    others = [trial("a", "o__x-1", 1.0, passed=True), trial("a", "o__y-1", 1.0)]
    failed = [trial("b", "o__x-1"), trial("b", "o__y-1")]
    trials = merge_runs([*others, *failed])
    sample = aggregate_trials(trials, STRICT).sample(
        [each for each in trials.agents if each.agent == "b"], measures.PASS
    )
    assert (sample.values, sample.missing) == ((0.0,), 1)


def test_failed_trial_counts_its_cost() -> None:
    records = [
        trial("a", "o__x-1", 1.0, cost_usd=2.0),
        trial("a", "o__y-1", cost_usd=1.0),
        trial("a", "o__z-1"),
    ]
    assert values(records, measures.COST, STRICT) == [2.0, 1.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1.5, -0.5])
def test_invalid_value_is_named_and_left_out(bad: float) -> None:
    trials = merge_runs([trial("a", "o__x-1", bad), trial("a", "o__y-1", 0.5)])
    assert aggregate_trials(trials, STRICT).sample(trials.agents, measures.IFR).values == (0.5,)
    assert any(f"a on o__x-1 (Open Direct): IFR is {bad}" in note for note in trials.notes)


def test_agent_with_different_instances_in_two_runs_is_one_agent() -> None:
    trials = merge_runs([trial("a", "o__x-1", 1.0, run="r1"), trial("a", "o__y-1", 0.0, run="r2")])
    assert trials.agent_names == ["a"]
    assert trials.notes == ()


def test_agent_with_another_model_in_another_run_is_named() -> None:
    first, other = trial(run="one", model="small"), trial(instance="o__r-2", run="two", model="large")
    assert merge_runs([first, other]).notes == (
        "a is one agent here, with different models: small in one, large in two",
    )
    assert merge_runs([first, replace(other, run="one")]).notes == ()


def test_same_agent_in_two_runs_is_qualified_by_run() -> None:
    records = [
        trial("a", "o__x-1", 1.0, run="r1"),
        trial("a", "o__x-1", 0.0, run="r2"),
        trial("b", "o__x-1", 1.0),
    ]
    trials = merge_runs(records)
    assert trials.agent_names == ["a (r1)", "a (r2)", "b"]
    assert len(trials.notes) == 1
    assert "r1 and r2" in trials.notes[0]


def test_duplicate_trial_counts_once_and_is_named() -> None:
    trials = merge_runs([trial("a", "o__x-1", 1.0), trial("a", "o__x-1", 0.0)])
    assert [record.scores.ifr for record in trials.agents] == [1.0]
    assert "twice" in trials.notes[0]
    assert len(merge_runs([trial("a", "o__x-1", 1.0), trial("a", "o__x-1", 0.0, attempt=2)]).agents) == 2


def test_pseudo_agents_of_runs_count_once_and_differences_are_reported() -> None:
    golden = trial(GOLDEN, "o__x-1", 1.0, lane="/direct")
    trials = merge_runs([golden, replace(golden, run="r2"), trial("a", "o__x-1", 1.0)])
    assert (len(trials.pseudo), trials.agent_names, trials.notes) == (1, ["a"], ())
    other = merge_runs([golden, replace(golden, run="r2", scores=replace(golden.scores, ifr=0.9))])
    assert [record.scores.ifr for record in other.pseudo] == [1.0]
    assert "0.9" in other.notes[0]


def test_attempts_at_instance_form_one_cluster() -> None:
    records = [
        trial("a", f"o__r{place}-1", 0.5 + 0.1 * place, attempt=attempt)
        for place in (1, 2)
        for attempt in (1, 2)
    ]
    trials = merge_runs(records)
    interval = aggregate_trials(trials, STRICT).interval(trials.agents, measures.IFR)
    assert (interval.n, interval.clusters) == (4, 2)
