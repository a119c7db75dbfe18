"""Recorded test results: parsing, and the baseline with which a prediction is compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.benchmark.benchmark import Benchmark
from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import GOLDEN, NULL
from codetaste.errors import ConfigError
from codetaste.evaluation.metrics import CRASHED_RUN, PassThresholds, TestCounts
from codetaste.evaluation.test_runs.recorded import (
    compare_with_baseline,
    parse_test_counts,
    parse_test_output,
    read_baseline,
    read_pseudo_agent_tests,
    read_test_output,
)

INSTANCE = Instance("o", "r", "a" * 40, "b" * 40)


def result_line(passed: object, failed: object = 0, **more: object) -> str:
    return json.dumps({"passed": passed, "failed": failed, "skipped": 0, "total": 20, **more})


@pytest.fixture
def benchmark(tmp_path: Path) -> Benchmark:
    return Benchmark(tmp_path, (INSTANCE,))


def write_baseline(benchmark: Benchmark, agent: str, *lines: str) -> None:
    path = benchmark.root / "baseline_results" / INSTANCE.path / f"{agent}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines))


def write_metadata(benchmark: Benchmark, **metadata: object) -> None:
    path = benchmark.root / "instance_images" / INSTANCE.path / "instance_metadata.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(metadata))


@pytest.mark.parametrize(
    ("output", "passed"),
    [
        (result_line(7), 7),
        (f"noise\n{result_line(7)}\nlate noise\n\n", 7),
        (f"{result_line(1)}\n{result_line(2)}\n", 2),
        ("\n".join([result_line(7), *["x"] * 9]), 7),
        (result_line(7) + "\r\n", 7),
        ('{"passed": 7, "failed": 0, "total": 7}', 7),
        ('{"passed": 7.0, "failed": 0, "total": 7, "more": {}}', 7),
    ],
)
def test_last_json_line_is_the_result(output: str, passed: int) -> None:
    parsed = parse_test_output(output.encode())
    assert parsed is not None
    assert parsed.passed == passed


@pytest.mark.parametrize(
    "output",
    [
        "",
        "\n\n",
        "\n".join([result_line(7), *["x"] * 10]),
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
def test_output_without_result_is_a_crash(tmp_path: Path, output: str) -> None:
    assert parse_test_output(output.encode("latin-1")) is None
    path = tmp_path / "out.txt"
    path.write_bytes(output.encode("latin-1"))
    assert read_test_output(path) == path.read_bytes()


@settings(max_examples=30)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.text() | st.integers(), st.lists))
def test_parse_test_counts_any_json_is_counts_or_none(value: object) -> None:
    parsed = parse_test_counts({"passed": value, "failed": 0, "total": 1})
    assert parsed is None or parsed.passed == (int(value) if isinstance(value, str) else value)


def test_counts_written_as_strings_are_read() -> None:
    counts = {"passed": "7", "failed": "0", "skipped": "1", "total": "8"}
    assert parse_test_counts(counts) == TestCounts(7, 0, 1, 8)
    for wrong in ("", "7.5", "-7", "seven", "7" * 400, " 7"):
        assert parse_test_counts(counts | {"passed": wrong}) is None


CRASH = {"passed": 0, "failed": -1, "skipped": 0, "total": 0, "error": "no summary line"}


@pytest.mark.parametrize("failed", [-1, "-1"])
def test_crash_as_published_counts_as_no_passed_and_no_failed_tests(failed: object) -> None:
    parsed = parse_test_counts(CRASH | {"failed": failed})
    assert parsed == TestCounts(0, 0, error="no summary line")
    assert (parsed.is_crash, parsed.is_valid) == (True, False)
    assert parse_test_counts(CRASH | {"error": None}) is None, "without an error -1 is no number of tests"


def test_crash_as_published_is_no_baseline(benchmark: Benchmark) -> None:
    good = {"passed": 12, "failed": 1, "total": 13}
    write_metadata(benchmark, golden_metrics=good, base_metrics=CRASH)
    parsed = read_baseline(benchmark, INSTANCE)
    assert (parsed.thresholds, parsed.runs) == (PassThresholds(12, 1), 1)
    assert parsed.notes == ("the base run of the baseline crashed and does not count",)
    write_metadata(benchmark, golden_metrics=CRASH, base_metrics=CRASH)
    assert read_baseline(benchmark, INSTANCE).thresholds is None
    write_baseline(benchmark, GOLDEN, json.dumps(CRASH), result_line(15))
    parsed = read_baseline(benchmark, INSTANCE)
    assert (parsed.thresholds, parsed.faults) == (PassThresholds(15, 0), ())
    assert "1 of 2 runs in golden_agent.jsonl crashed and do not count" in parsed.notes


def test_missing_test_output_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        read_test_output(tmp_path / "none")


def test_baseline_thresholds_use_all_runs_of_both_sides(benchmark: Benchmark) -> None:
    write_baseline(benchmark, GOLDEN, result_line(15), result_line(14, 1))
    write_baseline(benchmark, NULL, result_line(13, 2), result_line(16))
    write_metadata(benchmark, golden_metrics={"passed": 1, "failed": 9, "total": 10})
    parsed = read_baseline(benchmark, INSTANCE)
    assert (parsed.thresholds, parsed.runs, parsed.source, parsed.notes) == (
        PassThresholds(13, 2),
        4,
        "baseline_results",
        (),
    )


def test_crashed_baseline_run_is_excluded_and_noted(benchmark: Benchmark) -> None:
    write_baseline(benchmark, GOLDEN, result_line(15), "null", '{"passed": 1')
    parsed = read_baseline(benchmark, INSTANCE)
    assert parsed.thresholds == PassThresholds(15, 0)
    assert parsed.runs == 1
    assert parsed.notes == (
        "1 of 3 runs in golden_agent.jsonl crashed and do not count",
        "1 of 3 lines in golden_agent.jsonl are damaged",
        "the baseline has no null_agent.jsonl",
    )


def test_metadata_are_baseline_without_recorded_runs(benchmark: Benchmark) -> None:
    write_metadata(
        benchmark,
        golden_metrics={"passed": 13, "failed": 1, "skipped": 0, "total": 14, "error": None},
        base_metrics={"passed": 12, "failed": 2, "skipped": 0, "total": 14, "error": None},
    )
    parsed = read_baseline(benchmark, INSTANCE)
    assert (parsed.thresholds, parsed.runs) == (PassThresholds(12, 2), 2)
    assert "one run each" in parsed.notes[0]
    golden, null = (read_pseudo_agent_tests(benchmark, INSTANCE, agent) for agent in (GOLDEN, NULL))
    assert (golden, null) == (TestCounts(13, 1, 0, 14), TestCounts(12, 2, 0, 14))


def test_pass_is_unknown_without_baseline_or_result(benchmark: Benchmark) -> None:
    result = compare_with_baseline(TestCounts(9, 0, 0, 9), read_baseline(benchmark, INSTANCE))
    assert (result.passed, result.reason) == (None, "no baseline of R and R∘X* is recorded")
    write_baseline(benchmark, GOLDEN, result_line(9))
    baseline = read_baseline(benchmark, INSTANCE)
    assert compare_with_baseline(None, baseline).passed is None
    assert compare_with_baseline(TestCounts(9, 0, 0, 9), baseline).passed is True


def test_crashed_test_run_of_prediction_fails_with_note(benchmark: Benchmark) -> None:
    write_baseline(benchmark, GOLDEN, result_line(9))
    result = compare_with_baseline(CRASHED_RUN, read_baseline(benchmark, INSTANCE))
    assert result.passed is False
    assert result.notes[0] == "the test run gave no result: it counts as 0 passed, 0 failed"
    killed = replace(CRASHED_RUN, error="the memory limit was reached")
    note = compare_with_baseline(killed, read_baseline(benchmark, INSTANCE)).notes[0]
    assert note.startswith("the test run gave no result (the memory limit was reached): ")
