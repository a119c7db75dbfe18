"""Timelines of jobs: turns with their costs, tool calls, attempts, and waits apart from them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from codetaste.orchestration.budget.node import CallState
from codetaste.orchestration.wait import WaitReason
from codetaste.transcripts.timeline.journal_reader import JournalReader
from support.transcripts.journal_lines import JOB, JournalLines, call, text


def read(run: Path) -> JournalReader:
    reader = JournalReader(run)
    reader.poll()
    assert reader.problem == ""
    return reader


def test_turns_tools_and_waits_have_their_times(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job("sources/x")
    lines.job(needs=("sources/x",))
    lines.at = 1005
    lines.start("sources/x")
    lines.end("sources/x")
    lines.at = 1009
    lines.start()
    lines.add("wait_started", key=JOB, reason="rate_limit", detail="m", delay_s=3.0)
    lines.at = 1012
    lines.add("wait_ended", key=JOB, reason="rate_limit", detail="m", waited_s=3.0)
    reply = lines.reserve("turn-1/reply")
    lines.at = 1020
    lines.settle(reply, call("c1"))
    lines.at = 1024
    lines.tool("turn-1/tool-1", "no")
    lines.end()
    job = read(tmp_path).job(JOB)
    assert job is not None
    (turn,) = job.turns
    assert (turn.began, turn.ended, turn.settled_usd, turn.model) == (1012, 1020, Decimal("0.25"), "m")
    assert turn.tokens == {"input": 5, "cache_read": 0, "cache_write": 0, "output": 2, "reasoning": 0}
    (tool,) = job.tools
    assert (tool.effect, tool.began, tool.ended) == ("turn-1/tool-1", 1020, 1024)
    assert [(span.wait.reason, span.wait.detail, span.began, span.ended) for span in job.waits] == [
        (WaitReason.NEED, "sources/x", 1000, 1005),
        (WaitReason.JOBS, "", 1005, 1009),
        (WaitReason.RATE_LIMIT, "m", 1009, 1012),
    ]
    assert (job.began, job.ended) == (1009, 1024)
    assert job.waited_s(1024) == 12
    assert job.waited_s(1024, since=job.began) == 3


def test_failed_calls_are_one_turn_whose_costs_add_up(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    lines.start()
    first = lines.reserve("turn-1/reply", usd="2.0")
    lines.add("unknown", call=first)
    lines.at = 1010
    second = lines.reserve("turn-1/reply", 2)
    lines.at = 1012
    lines.settle(second, text("x"))
    lines.reserve("turn-2/reply", usd="0.5")
    job = read(tmp_path).job(JOB)
    assert job is not None
    one, two = job.turns
    assert (one.calls, one.began, one.ended, one.state) == (2, 1000, 1012, CallState.SETTLED)
    assert (one.settled_usd, one.unknown_usd) == (Decimal("0.25"), Decimal("2.0"))
    assert (two.state, two.unknown_usd, two.ended) == (CallState.UNKNOWN, Decimal("0.5"), None)


def test_attempts_and_sessions_end_what_was_open(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    lines.start()
    lines.at = 1003
    lines.add("retry", key=JOB, attempt=1, cause="unavailable", error="e", delay_s=4.0)
    lines.at = 1007
    lines.start(attempt=2)
    lines.add("wait_started", key=JOB, reason="cpu", detail="", delay_s=None)
    lines.at = 1009
    lines.add("note", key=JOB, text="n")
    lines.at = 2000
    lines.session()
    lines.job()
    lines.start(attempt=3)
    lines.at = 2001
    lines.end()
    job = read(tmp_path).job(JOB)
    assert job is not None
    assert [(each.number, each.began, each.ended, each.cause) for each in job.attempts] == [
        (1, 1000, 1003, "unavailable"),
        (2, 1007, 1009, "interrupted"),
        (3, 2000, 2001, ""),
    ]
    assert [(span.wait.reason, span.began, span.ended) for span in job.waits] == [
        (WaitReason.RETRY, 1003, 1007),
        (WaitReason.CPU, 1007, 1009),
    ]


def test_growing_journal_is_read_on(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    reader = read(tmp_path)
    lines.start()
    with lines.path.open("a") as file:
        file.write('{"event": "ended", "key"')
    reader.poll()
    job = reader.job(JOB)
    assert job is not None
    assert len(job.attempts) == 1
    JournalLines(tmp_path).job("other")
    reader.poll()
    assert reader.job(JOB) is None
    assert reader.job("other") is not None


def test_damage_is_a_problem_and_the_lines_before_it_count(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    lines.add("started", key=JOB, attempt="many")
    lines.end()
    reader = JournalReader(tmp_path)
    reader.poll()
    assert "line 4" in reader.problem
    assert reader.job(JOB) is not None
    gone = JournalReader(tmp_path / "none")
    gone.poll()
    assert "No such file" in gone.problem or "missing" in gone.problem
    assert gone.job(JOB) is None
