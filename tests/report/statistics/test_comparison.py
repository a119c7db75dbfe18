"""Comparison of systems: ranks, significance, and the text if no test is possible."""

from __future__ import annotations

import json
import random

import pytest

from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.evaluation.trials.records import PublishedScores, TrialRecord
from codetaste.report.statistics.measures import ALIGNMENT, IFR, PASS
from codetaste.report.summary import render_comparison
from codetaste.report.tables.comparison import compare, comparison_to_json
from codetaste.site.overview.places import find_places
from support.evaluation.records import several, trial


def two_agents(instances: int, *, passed: bool | None = None) -> list[TrialRecord]:
    draw = random.Random(1)
    good = [0.5 + draw.random() / 2 for _ in range(instances)]
    poor = [value - 0.3 * draw.random() for value in good]
    return [*several("poor", [*poor], passed=passed), *several("good", [*good], passed=passed)]


def test_better_agent_ranks_first_and_is_significant_with_many() -> None:
    comparison = compare(two_agents(12))
    assert comparison.systems == ("good", "poor")
    first = comparison.estimate("good", "Open Direct", IFR)
    assert first is not None
    assert (first.rank, first.beats, first.interval.n) == (1, ("poor",), 12)
    (pairwise,) = comparison.tests
    assert pairwise.p == 2 / 2**12
    assert pairwise.significant
    assert "good is" in render_comparison(comparison)
    assert "better than poor" in render_comparison(comparison)


def test_single_instance_ranks_with_interval_but_not_significant() -> None:
    comparison = compare(two_agents(1))
    assert comparison.systems == ("good", "poor")
    estimate = comparison.estimate("good", "Open Direct", IFR)
    assert estimate is not None
    assert estimate.interval.low is not None
    assert estimate.interval.high is not None
    assert estimate.interval.high - estimate.interval.low > 0.5
    text = render_comparison(comparison)
    assert "no difference is significant" in text
    assert "no difference could be significant" in text


def test_permutation_flips_repositories_as_a_whole() -> None:
    records = [
        trial(agent, f"o__r{place % 2}-{place}", value)
        for agent, value in (("good", 0.9), ("poor", 0.1))
        for place in range(20)
    ]
    (pairwise,) = compare(records).tests
    assert (pairwise.pairs, pairwise.clusters, pairwise.p) == (20, 2, 0.5)


def test_agents_without_test_runs_are_ranked_by_ifr_and_have_no_alignment() -> None:
    comparison = compare(two_agents(6))
    assert comparison.primary == IFR
    assert comparison.estimate("good", "Open Direct", ALIGNMENT) is None
    assert "PASS was not measured in any trial" in render_comparison(comparison)
    assert compare(two_agents(6, passed=True)).primary == ALIGNMENT


def test_only_instances_of_both_agents_are_compared() -> None:
    records = [*several("a", [0.5] * 8), *several("b", [0.4] * 5), trial("b", "o__elsewhere-1", 0.9)]
    (pairwise,) = compare(records).tests
    assert pairwise.pairs == 5
    assert pairwise.difference == pytest.approx(0.1)


def test_agents_without_a_common_instance_are_neither_tied_nor_compared_without_a_word() -> None:
    records = [trial(agent, f"o__r{number}-1", 0.5) for number, agent in enumerate("abcd")]
    comparison = compare([*records, trial("a", "o__r1-1", 0.4)])
    [note] = [each for each in comparison.notes if "share no instance" in each]
    assert note == (
        "Open Direct: not compared, since they share no instance: b and c; b and d; c and d, and 2 more pairs"
    )
    places = find_places(comparison, "Open Direct")
    assert {name: place.tied for name, place in places.items()} == {
        "a": ("b",),
        "b": ("a",),
        "c": (),
        "d": (),
    }


def test_attempts_are_averaged_before_pairing() -> None:
    records = [
        *(
            trial("a", "o__r-1", value, attempt=attempt)
            for attempt, value in enumerate((0.0, 1.0, 1.0, 1.0), 1)
        ),
        trial("b", "o__r-1", 0.5),
    ]
    (pairwise,) = compare(records).tests
    assert (pairwise.pairs, pairwise.difference) == (1, 0.25)


def test_all_tests_of_a_comparison_are_corrected_together() -> None:
    comparison = compare([*two_agents(8, passed=True), *several("third", [0.2] * 8, passed=False)])
    assert len({pairwise.measure for pairwise in comparison.tests}) == 3
    assert len(comparison.tests) == 9
    least = min(comparison.tests, key=lambda pairwise: pairwise.p)
    assert least.q >= least.p
    assert any(pairwise.measure == PASS and pairwise.p == 1 for pairwise in comparison.tests)


def test_strict_counts_failed_trials_and_published_does_not() -> None:
    records = [*several("a", [0.8, 0.8, None, None]), *several("b", [0.7, 0.7, 0.7, 0.7])]
    assert compare(records).systems == ("b", "a")
    assert compare(records, aggregation="published").systems == ("a", "b")


def test_both_aggregations_are_shown_where_they_differ_with_counts() -> None:
    same = render_comparison(compare(two_agents(3)))
    assert same.count("Comparison (") == 1
    assert "strict and published agree" in same
    failed = [*several("a", [0.8, 0.8, None]), *several("b", [0.7, 0.7, 0.7])]
    text = render_comparison(compare(failed))
    assert "Comparison (strict)" in text
    assert "Comparison (published)" in text
    assert "6 trials: 5 scored, 1 failed; the published harness drops 1" in text
    assert comparison_to_json(compare(failed))["published"]["systems"] == ["a", "b"]


def test_golden_and_base_are_listed_unranked() -> None:
    records = [
        *several("a", [0.5, 0.6]),
        *several(GOLDEN, [1.0, 1.0, 1.0], lane="/direct"),
        *several(NULL, [0.0, 0.0], lane="/direct"),
    ]
    comparison = compare(records)
    assert comparison.systems == ("a",)
    assert [(each.name, each.mean, each.n) for each in comparison.references] == [
        ("Golden Patch", 1.0, 2),
        ("Base Commit", 0.0, 2),
    ]
    assert "Golden Patch" in render_comparison(comparison)
    assert "no two of them can be compared" in render_comparison(comparison)


def test_recorded_tests_of_references_are_known_to_both_aggregations() -> None:
    unpublished = PublishedScores(None, 1.0, 1.0, 1.0)
    golden = trial(GOLDEN, ifr=1.0, lane="/direct", passed=True, published=unpublished)
    text = render_comparison(compare([trial("a", ifr=0.5), golden]))
    assert text.count("Comparison (") == 1
    assert "strict and published agree" in text


def test_modes_of_an_agent_can_be_compared() -> None:
    records = [
        *several("a", [0.1] * 7, lane="open/direct"),
        *several("a", [0.6] * 7, lane="open/plan"),
    ]
    comparison = compare(records, by="track_mode")
    assert (comparison.systems, comparison.settings) == (("Open Direct", "Open Plan"), ("a",))
    estimate = comparison.estimate("Open Plan", "a", IFR)
    assert estimate is not None
    assert estimate.beats == ("Open Direct",)


def test_comparison_without_trials_is_a_message() -> None:
    assert render_comparison(compare([])) == "There are no trials to compare."
    assert "no trial has a value for these measures" in render_comparison(
        compare([trial("a", status="not_scored")])
    )


def test_comparison_as_json_is_valid_and_complete() -> None:
    document = json.loads(json.dumps(comparison_to_json(compare(two_agents(12))), allow_nan=False))
    assert document["systems"] == ["good", "poor"]
    assert document["tests"][0]["significant"]
    assert document["estimates"][0].keys() >= {"mean", "low", "high", "n", "clusters", "method", "rank"}
