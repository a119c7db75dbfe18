"""Recorded test results: what counts as a result, and what a prediction is held against."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.errors import ConfigError
from codetaste.evaluation.metrics import CRASHED_RUN, PassThresholds, TestCounts
from codetaste.evaluation.test_results import (
    compare_with_baseline,
    parse_test_counts,
    parse_test_output,
    read_baseline,
    read_pseudo_agent_tests,
    read_test_results,
)

INSTANCE = Instance("o", "r", "a" * 40, "b" * 40)


def said(passed: object, failed: object = 0, **more: object) -> str:
    return json.dumps({"passed": passed, "failed": failed, "skipped": 0, "total": 20, **more})


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    return Benchmark(tmp_path, (INSTANCE,))


def record(benchmark: Benchmark, agent: str, *lines: str) -> None:
    path = benchmark.root / "baseline_results" / INSTANCE.path / f"{agent}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def describe(benchmark: Benchmark, **metadata: object) -> None:
    path = benchmark.root / "instance_images" / INSTANCE.path / "instance_metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        (said(7), 7),
        (f"noise\n{said(7)}\nlate noise\n\n", 7),
        (f"{said(1)}\n{said(2)}\n", 2),
        ("\n".join([said(7), *["x"] * 9]), 7),
        (said(7) + "\r\n", 7),
        ('{"passed": 7, "failed": 0, "total": 7}', 7),
        ('{"passed": 7.0, "failed": 0, "total": 7, "more": {}}', 7),
    ],
)
def test_the_last_line_of_json_counts(output: str, passed: int) -> None:
    found = parse_test_output(output.encode())
    assert found is not None
    assert found.passed == passed


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n\n",
        "\n".join([said(7), *["x"] * 10]),
        '{"passed": 7, "failed": 0, "tot',
        '{"passed": NaN, "failed": 0, "total": 7}',
        '{"passed": -1, "failed": 0, "total": 7}',
        '{"passed": 1e400, "failed": 0, "total": 7}',
        '{"passed": 1.5, "failed": 0, "total": 7}',
        '{"passed": true, "failed": 0, "total": 7}',
        '{"passed": 7, "failed": 0}',
        '{"passed": 7, "failed": 0, "total": 7, "error": 3}',
        "null",
        "[" * 100_000,
        "\xff",
    ],
)
def test_an_output_without_a_result_is_a_crash(tmp_path: Path, output: str) -> None:
    assert parse_test_output(output.encode("latin-1")) is None
    path = tmp_path / "out.txt"
    path.write_bytes(output.encode("latin-1"))
    assert read_test_results(path) == CRASHED_RUN


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), st.lists))
def test_parse_test_counts_any_json_is_counts_or_none(value: object) -> None:
    found = parse_test_counts({"passed": value, "failed": 0, "total": 1})
    assert found is None or found.passed == value


def test_a_test_output_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_test_results(tmp_path / "none")


def test_all_runs_on_both_sides_bound_a_prediction(benchmark: Benchmark) -> None:
    record(benchmark, GOLDEN, said(15), said(14, 1))
    record(benchmark, NULL, said(13, 2), said(16))
    describe(benchmark, golden_metrics={"passed": 1, "failed": 9, "total": 10})
    found = read_baseline(benchmark, INSTANCE)
    assert (found.thresholds, found.runs, found.source, found.notes) == (
        PassThresholds(13, 2),
        4,
        "baseline_results",
        (),
    )


def test_a_crashed_run_of_the_baseline_does_not_count_and_is_noted(benchmark: Benchmark) -> None:
    record(benchmark, GOLDEN, said(15), "null", '{"passed": 1')
    found = read_baseline(benchmark, INSTANCE)
    assert found.thresholds == PassThresholds(15, 0)
    assert found.runs == 1
    assert found.notes == (
        "1 of 3 runs in golden_agent.jsonl crashed and do not count",
        "1 of 3 lines in golden_agent.jsonl are damaged",
        "the baseline has no null_agent.jsonl",
    )


def test_without_runs_the_metadata_are_a_baseline_of_one_run(benchmark: Benchmark) -> None:
    describe(
        benchmark,
        golden_metrics={"passed": 13, "failed": 1, "skipped": 0, "total": 14, "error": None},
        base_metrics={"passed": 12, "failed": 2, "skipped": 0, "total": 14, "error": None},
    )
    found = read_baseline(benchmark, INSTANCE)
    assert (found.thresholds, found.runs) == (PassThresholds(12, 2), 2)
    assert "one run each" in found.notes[0]
    golden, null = (read_pseudo_agent_tests(benchmark, INSTANCE, agent) for agent in (GOLDEN, NULL))
    assert (golden, null) == (TestCounts(13, 1, 0, 14), TestCounts(12, 2, 0, 14))


def test_without_anything_pass_is_not_known(benchmark: Benchmark) -> None:
    known = compare_with_baseline(TestCounts(9, 0, 0, 9), read_baseline(benchmark, INSTANCE))
    assert (known.passed, known.why) == (None, "no baseline of R and R∘X* is recorded")
    record(benchmark, GOLDEN, said(9))
    baseline = read_baseline(benchmark, INSTANCE)
    assert compare_with_baseline(None, baseline).passed is None
    assert compare_with_baseline(TestCounts(9, 0, 0, 9), baseline).passed is True


def test_a_crashed_test_run_of_a_prediction_does_not_pass_and_says_so(benchmark: Benchmark) -> None:
    record(benchmark, GOLDEN, said(9))
    known = compare_with_baseline(CRASHED_RUN, read_baseline(benchmark, INSTANCE))
    assert known.passed is False
    assert known.notes[0] == "the test run gave no result: it counts as 0 passed, 0 failed"
