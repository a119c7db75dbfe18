"""The last line of run_tests' standard output is the result; what else looks like one is reported."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.test_runs.problems import RunProblem
from codetaste.evaluation.test_runs.result_line import (
    MAX_HEAD_BYTES,
    MAX_TAIL_BYTES,
    RunOutput,
    parse_run_output,
)

GOOD = '{"passed": 12, "failed": 1, "skipped": 2, "total": 15}'
COUNTS = TestCounts(12, 1, 2, 15)


@pytest.mark.parametrize(
    ("passed", "failed", "skipped", "total"),
    [
        (3091, 0, 1, 3092),  # total is the sum
        (1225, 0, 2, 1225),  # skipped tests are not in total, as some published scripts count
        (42, 0, 42, 42),
        (1636, 1, 266, 2131),  # others are in total too: errors, expected failures
        (0, 0, 0, 0),
        (5, 0, 9, 5),
    ],
)
def test_counts_of_published_scripts_are_plausible(
    passed: int, failed: int, skipped: int, total: int
) -> None:
    line = json.dumps({"passed": passed, "failed": failed, "skipped": skipped, "total": total})
    result = parse_run_output(RunOutput(f"some log\n{line}\n\n \n".encode()))
    assert result.counts == TestCounts(passed, failed, skipped, total)
    assert (result.problem, result.message, result.contradictions) == (None, "", ())


@pytest.mark.parametrize(
    "line",
    [
        '{"passed": -1, "failed": 0, "skipped": 0, "total": 0}',
        '{"passed": 1000000001, "failed": 0, "skipped": 0, "total": 1000000001}',
        '{"passed": 1.5, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": true, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": NaN, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": Infinity, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": 1e400, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": null, "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": [1], "failed": 0, "skipped": 0, "total": 2}',
        '{"passed": 3, "failed": 0}',
        '{"passed": 3, "total": 3}',
        '{"passed": 20, "failed": 1, "skipped": 0, "total": 20}',
        '{"passed": 1, "failed": 0, "skipped": 0, "total": 1, "passed": 99}',
        '{"passed": 1, "failed": 0, "skipped": 0, "total": 1, "error": "x\x1b[2J"}',
        '{"passed": ' + "9" * 3000 + ', "failed": 0, "total": 1}',
    ],
)
def test_absurd_counts_are_named(line: str) -> None:
    result = parse_run_output(RunOutput(line.encode()))
    assert (result.counts, result.problem) == (None, RunProblem.BAD_COUNTS)
    assert result.message.isprintable()
    assert len(result.message) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "printed nothing"),
        (" \n\n", "printed nothing"),
        ("13 passed in 1.2s\n", "no JSON object"),
        ("[1, 2]\n", "no JSON object"),
        ('{"tests": 5}\n', "no JSON object"),
        ("{" * 4000, "no JSON object"),
        (f"{GOOD}\nbye\nbye\n", "line 1 of stdout is a result, but 2 lines follow"),
        (f"a\n\n{GOOD}\n\nbye", "line 3 of stdout is a result, but 1 line follows"),
        (f"....{GOOD}", "other text around the result"),
        (f"{GOOD} done", "other text around the result"),
        (f"progress\r{GOOD}", "other text around the result"),
        (json.dumps(json.loads(GOOD), indent=1), "spread over several lines"),
        (
            '{"passed": 0, "failed": -1, "total": 0, "error": "it hung"}',
            "an error instead of counts: it hung",
        ),
        (
            r'{"passed": 0, "failed": 0, "skipped": 0, "total": 0, "error": "x\u001b[2J"}',
            r"an error instead of counts: x\x1b[2J",
        ),
    ],
)
def test_output_without_a_result_says_what_is_in_its_place(text: str, message: str) -> None:
    result = parse_run_output(RunOutput(text.encode()))
    assert (result.counts, result.problem) == (None, RunProblem.NO_RESULT)
    assert message in result.message
    assert result.message.isprintable()


def test_only_the_last_line_counts_and_others_are_contradictions() -> None:
    forged = '{"passed": 500, "failed": 0, "skipped": 0, "total": 500}'
    result = parse_run_output(RunOutput(f"{forged}\nlog {forged} log\n{GOOD}\n".encode()))
    assert (result.counts, result.problem, result.other_results) == (COUNTS, None, 1)
    first, second = result.contradictions
    assert first.startswith("line 1 of stdout is a result too: ")
    assert second.startswith("line 2 of stdout has a result inside other text: ")


def test_result_with_counts_and_an_error_is_a_contradiction() -> None:
    result = parse_run_output(RunOutput(b'{"passed": 3, "failed": 0, "total": 3, "error": "no db"}'))
    assert result.counts == TestCounts(3, 0, 0, 3, "no db")
    assert result.contradictions == ("the result has counts and an error: no db",)


def test_contradictions_are_bounded() -> None:
    result = parse_run_output(RunOutput(f"{GOOD}\n".encode() * 5000))
    assert result.other_results == 4999
    assert len(result.contradictions) == 21
    assert result.contradictions[-1] == "… and 4,979 further lines like these"


def test_middle_of_a_long_output_is_not_read() -> None:
    filler = b"x" * 1023 + b"\n"
    whole = filler * ((MAX_HEAD_BYTES + MAX_TAIL_BYTES) // 1024 + 10)
    result = parse_run_output(RunOutput(f"{GOOD}\n".encode() + whole + f"{GOOD}\n{GOOD}".encode()))
    assert result.counts == COUNTS
    assert [text.partition(" of stdout")[0] for text in result.contradictions] == [
        "line 1",
        "line 2 from the end",
    ]


@pytest.mark.parametrize("tail", [GOOD, f"{GOOD}\n", f"{GOOD}\n\n", "", "\n"])
def test_line_that_begins_in_the_missing_part_is_no_result(tail: str) -> None:
    result = parse_run_output(RunOutput(b"log\n", tail.encode(), omitted_bytes=100))
    assert (result.counts, result.problem) == (None, RunProblem.NO_RESULT)


def test_head_and_tail_without_a_gap_are_one_text() -> None:
    output = RunOutput(b"log\n" + GOOD[:10].encode(), GOOD[10:].encode() + b"\n")
    assert parse_run_output(output).counts == COUNTS


@given(st.binary(max_size=400), st.binary(max_size=400), st.integers(0, 10))
def test_no_output_raises(head: bytes, tail: bytes, omitted: int) -> None:
    result = parse_run_output(RunOutput(head, tail, omitted))
    assert (result.counts is None) == (result.problem is not None)
    assert result.message.isprintable()
    assert all(text.isprintable() for text in result.contradictions)


_VALUES = st.sampled_from(
    [-1, 0, 1, 7, 10**9, 10**9 + 1, True, False, 0.5, 2.0, float("nan"), float("inf"), None, "3", "x", [], {}]
)


@given(st.dictionaries(st.sampled_from(["passed", "failed", "skipped", "total", "error", "x"]), _VALUES))
def test_counts_are_plausible_or_refused(data: dict[str, object]) -> None:
    result = parse_run_output(RunOutput(json.dumps(data).encode()))
    if result.counts is not None:
        counts = (result.counts.passed, result.counts.failed, result.counts.skipped, result.counts.total)
        assert all(type(count) is int and 0 <= count <= 10**9 for count in counts)
        assert result.counts.passed + result.counts.failed <= result.counts.total


def test_infrastructure_problems_blame_the_machine_alone() -> None:
    to_blame = {problem.value for problem in RunProblem if problem.infrastructure}
    assert to_blame == {"sandbox_lost", "image_unavailable", "host_out_of_memory", "host_disk_full"}
