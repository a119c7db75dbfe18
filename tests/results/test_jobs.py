"""Rows of jobs: seconds of work apart from waits, money, ends; also of runs that go on or are damaged."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.report.status.job_clock import JobClock
from codetaste.results.load import load
from codetaste.results.rows.job_totals import job_totals
from codetaste.results.run_jobs import read_jobs

Line = dict[str, Any]
HEADER: list[Line] = [
    {"event": "journal", "format": 2, "t": 0.0},
    {"event": "session", "pid": 7, "host": "here", "limits": ["2.0", None, 60.0, None], "t": 1.0},
]


def write_lines(run: Path, lines: Iterable[Line], end: str = "") -> Path:
    (run / "outputs").mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in [*HEADER, *lines])
    (run / "journal.jsonl").write_text(text + end)
    return run


def job(at: float, key: str, *needs: str) -> Line:
    line = {"event": "job", "key": key, "title": f"title of {key}", "lane": "m", "needs": list(needs)}
    return {**line, "path": [key], "t": at}


def event(at: float, name: str, key: str, **more: Any) -> Line:
    return {"event": name, "key": key, **more, "t": at}


def wait(at: float, name: str, key: str, reason: str, **more: Any) -> Line:
    return event(at, name, key, reason=reason, detail="m", **more)


def ended(at: float, key: str, status: str = "done", **more: Any) -> Line:
    return event(at, "ended", key, fingerprint="f", status=status, **more)


LINES = [
    job(1.0, "sources/x"),
    job(1.0, "infer/a/open/direct/o__r-1/execute", "sources/x"),
    event(2.0, "started", "sources/x", attempt=1),
    ended(5.0, "sources/x"),
    event(7.0, "started", "infer/a/open/direct/o__r-1/execute", attempt=1),
    wait(8.0, "wait_started", "infer/a/open/direct/o__r-1/execute", "rate_limit", delay_s=3.0),
    wait(9.0, "wait_started", "infer/a/open/direct/o__r-1/execute", "permit", delay_s=None),
    wait(11.0, "wait_ended", "infer/a/open/direct/o__r-1/execute", "rate_limit", waited_s=3.0),
    wait(12.0, "wait_ended", "infer/a/open/direct/o__r-1/execute", "permit", waited_s=3.0),
    event(
        13.0,
        "retry",
        "infer/a/open/direct/o__r-1/execute",
        attempt=1,
        cause="sandbox",
        error="gone",
        delay_s=2.0,
    ),
    event(15.0, "started", "infer/a/open/direct/o__r-1/execute", attempt=2),
    ended(18.0, "infer/a/open/direct/o__r-1/execute", "failed", cause="refused", error="the model refused"),
]


def test_seconds_of_work_and_of_waits_are_distinguished(tmp_path: Path) -> None:
    rows = {row.key: row for row in load(write_lines(tmp_path / "run", LINES)).jobs}
    row = rows["infer/a/open/direct/o__r-1/execute"]
    assert (row.queued_needs_s, row.queued_resources_s, row.retry_s) == (4.0, 2.0, 2.0)
    assert (row.running_s, row.waiting_s, row.working_s) == (9.0, 4.0, 5.0)
    assert (row.waited_rate_limit_s, row.waited_permit_s, row.waited_other_s) == (3.0, 3.0, 0.0)
    assert (row.state, row.cause, row.reason, row.attempts) == ("failed", "refused", "the model refused", 2)
    assert (row.started_at, row.ended_at) == ("1970-01-01T00:00:07.000Z", "1970-01-01T00:00:18.000Z")
    assert (row.flow, row.title, row.tokens_input) == ("infer", f"title of {row.key}", None)
    assert rows["sources/x"].queued_resources_s == 1.0


def call(at: float, number: int, *ending: str, key: str = "infer/a/open/direct/o__r-1/execute") -> list[Line]:
    """A call of a job that ended as its last event; one that is settled was answered with 7 + 2 tokens."""
    name, usage = f"{key}/turn#{number}", {"input": 7, "output": 2}
    reserved = {"fingerprint": "f", "effect": "turn", "path": [key], "usd": "0.5", "tokens": 90}
    lines = [event(at, "reserved", key, call=name, **reserved)]
    for each in ending:
        lines.append({"event": each, "call": name, "t": at})
        if each == "settled":
            lines[-1] |= {"usd": "0.1", "tokens": 9, "value": {"usage": usage, "call": name}}
    return lines


@pytest.mark.parametrize(
    ("calls", "tokens"),
    [
        ([], None),
        ([*call(8.0, 1, "settled"), *call(9.0, 2, "settled")], 14),
        ([*call(8.0, 1, "settled"), *call(9.0, 2, "released")], 7),
        (call(8.0, 1, "released"), 0),
        ([*call(8.0, 1, "settled"), *call(9.0, 2, "unknown")], None),
        ([*call(8.0, 1, "settled"), *call(9.0, 2)], None),
        ([*call(8.0, 1, "settled"), *call(9.0, 1, "settled", key="infer/a/open/direct/o__r-1/plan")], 7),
    ],
)
def test_tokens_are_unknown_if_those_of_one_call_are(
    tmp_path: Path, calls: list[Line], tokens: int | None
) -> None:
    """Never 0, and never the sum of the known ones; a call that was not billed had none."""
    jobs = read_jobs(write_lines(tmp_path / "run", [*LINES, *calls]), "run").jobs
    row = jobs["infer/a/open/direct/o__r-1/execute"]
    assert (row.tokens_input, row.tokens_reasoning) == (tokens, None if tokens is None else 0)
    totals = job_totals([*jobs.values()], {"input": 3})
    both = 14 if any("/plan" in line.get("key", "") for line in calls) else tokens
    assert totals["tokens_input"] == (both if calls else 3)


def test_a_trial_without_a_folder_has_the_end_of_its_job(tmp_path: Path) -> None:
    trial = load(write_lines(tmp_path / "run", LINES)).trials[0]
    assert (trial.outcome, trial.status, trial.cause) == ("refused", "refused", "refused")
    assert (trial.working_s, trial.waiting_s, trial.queued_s, trial.folder) == (5.0, 4.0, 6.0, None)
    assert (trial.cost_usd, trial.settled_usd, trial.tokens_input) == (None, 0.0, None)


def test_a_killed_run_has_the_seconds_until_its_last_line(tmp_path: Path) -> None:
    lines = [*LINES[:6], {"event": "note", "key": "", "text": "x", "t": 10.0}]
    jobs = {row.key: row for row in load(write_lines(tmp_path / "run", lines, end='{"event": "st')).jobs}
    row = jobs["infer/a/open/direct/o__r-1/execute"]
    assert (row.state, row.ending, row.ended_at) == ("interrupted", None, None)
    assert (row.running_s, row.waiting_s) == (3.0, 2.0)
    assert load(tmp_path / "run").trials[0].outcome == "not_ended"


def test_time_between_sessions_does_not_count(tmp_path: Path) -> None:
    key = "infer/a/open/direct/o__r-1/execute"
    again = [{**HEADER[1], "t": 1000.0}, job(1000.0, key), event(1001.0, "started", key, attempt=2)]
    lines = [*LINES[:5], event(8.0, "note", key, text="x"), *again, ended(1003.0, key)]
    row = {row.key: row for row in load(write_lines(tmp_path / "run", lines)).jobs}[key]
    assert (row.running_s, row.queued_resources_s, row.attempts) == (3.0, 3.0, 2)
    assert row.queued_needs_s == 4.0


def test_jobs_before_a_damaged_line_come_with_a_problem(tmp_path: Path) -> None:
    run = write_lines(tmp_path / "run", LINES, end='{"event": "settled", "call": "x", "usd": "NaN"}\n{}\n')
    results = load(run)
    assert [row.state for row in results.jobs] == ["done", "failed"]
    assert any("journal" in each.location for each in results.problems)


def test_a_journal_of_another_format_is_a_problem(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "journal.jsonl").write_text('{"event": "journal", "format": 1, "t": 1}\n')
    found = read_jobs(run, "run")
    assert not found.jobs
    assert found.problem is not None
    assert "format" in str(found.problem)


@pytest.mark.parametrize("name", ["journal.jsonl", "outputs"])
def test_a_folder_in_the_place_of_a_file_breaks_nothing(tmp_path: Path, name: str) -> None:
    run = write_lines(tmp_path / "run", LINES)
    other = run / ("outputs" if name == "journal.jsonl" else "journal.jsonl")
    assert other.exists()
    if name == "journal.jsonl":
        (run / name).unlink()
        (run / name).mkdir()
    else:
        (run / name).rmdir()
        (run / name).write_text("")
    assert load(run).trials is not None


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["queue", "start", "retry", "end", "stop", "begin_wait", "end_wait"]),
        st.integers(0, 9),
    )
)


@given(STEPS)
def test_seconds_of_any_order_of_events_add_up_and_are_never_negative(steps: list[tuple[str, int]]) -> None:
    clock, at = JobClock(), 0.0
    for name, passed in steps:
        at += passed
        match name:
            case "queue":
                clock.queue(at, ())
            case "start" | "stop":
                getattr(clock, name)(at, 0.0)
            case _:
                getattr(clock, name)(at)
    found = clock.seconds(at + 1, 0.0)
    parts = (found.needs, found.resources, found.retries, found.running)
    assert min(parts) >= 0
    assert 0 <= found.waiting <= found.running
    assert sum(parts) <= at + 1
    assert found.working == found.running - found.waiting
