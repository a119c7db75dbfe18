"""Which conversations a job or trial has, and what the journal has of those without a transcript."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from codetaste.transcripts.conversations import conversations_of, conversations_of_logs
from codetaste.transcripts.event import EventKind, SourceKind
from codetaste.transcripts.journal import effect_part
from codetaste.transcripts.read import read_events
from codetaste.transcripts.timeline.journal_reader import JournalReader
from support.transcripts.gateway_lines import GatewayLines
from support.transcripts.journal_lines import JOB, JournalLines, call, text

TRIAL = JOB.removesuffix("/execute")


def write(run: Path, *names: str) -> None:
    for name in names:
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}\n")


def found(run: Path, prefix: str, journal: JournalReader | None = None) -> list[tuple[str, ...]]:
    return [
        (each.source.value, each.step, each.part, str(each.attempt))
        for each in conversations_of(run, prefix, journal)
    ]


def polled(run: Path) -> JournalReader:
    journal = JournalReader(run)
    journal.poll()
    return journal


def test_conversations_of_a_trial_are_in_the_order_of_its_steps(tmp_path: Path) -> None:
    folder = f"transcripts/{TRIAL}"
    names = ("execute", "judge", "plan.plan-attempt-10", "plan.plan-attempt-2", "attempt-2/execute")
    write(tmp_path, *(f"{folder}/{name}.jsonl" for name in names), f"{folder}2/execute.jsonl")
    assert found(tmp_path, TRIAL) == [
        ("loop", "plan", "plan-attempt-2", "0"),
        ("loop", "plan", "plan-attempt-10", "0"),
        ("loop", "judge", "", "0"),
        ("loop", "execute", "", "0"),
    ]
    assert found(tmp_path, f"{TRIAL}/attempt-2") == [("loop", "execute", "", "0")]


def test_output_counts_where_the_gateway_has_no_request(tmp_path: Path) -> None:
    lines = GatewayLines(tmp_path, f"transcripts/{TRIAL}/execute.attempt-1.jsonl")
    lines.exchange([{"role": "user", "content": "x"}])
    GatewayLines(tmp_path, f"transcripts/{TRIAL}/execute.attempt-2.jsonl", attempt=2)
    write(tmp_path, *(f"events/{TRIAL}/execute.attempt-{number}.jsonl" for number in (1, 2, 10)))
    assert found(tmp_path, TRIAL) == [
        ("gateway", "execute", "", "1"),
        ("output", "execute", "", "2"),
        ("output", "execute", "", "10"),
    ]


def test_keys_with_dots_are_not_confused(tmp_path: Path) -> None:
    key = "answer/multi-agent/m/abc_1"
    names = (".developer", ".review-1", ".8", ".8.developer", ".attempt-2")
    write(tmp_path, *(f"transcripts/{key}{name}.jsonl" for name in names))
    assert found(tmp_path, key) == [
        ("gateway", "answer", "", "2"),
        ("loop", "answer", "developer", "0"),
        ("loop", "answer", "review-1", "0"),
    ]
    assert [step for _, step, *_ in found(tmp_path, f"{key}.8")] == ["answer", "answer"]
    write(tmp_path, "transcripts/discover/m/x/additive.jsonl")
    assert found(tmp_path, "discover/m/x/additive") == [("loop", "additive", "", "0")]


@pytest.mark.parametrize("prefix", ["../x", "a/../../b", "none", "", "\0", "x" * 300])
def test_odd_keys_have_no_conversation(tmp_path: Path, prefix: str) -> None:
    write(tmp_path / "run", "transcripts/execute/x.jsonl")
    write(tmp_path, "x/y.jsonl")
    assert found(tmp_path / "run", prefix) == []


def test_killed_job_has_what_its_journal_has(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    lines.start()
    lines.at = 1001
    reply = lines.reserve("turn-1/reply")
    lines.at = 1004
    lines.settle(reply, text("I look"), call("c1", command="ls"), call("c2", command="rm"))
    lines.tool("turn-1/tool-1", "a")
    lines.tool("turn-1/tool-2", "no", is_error=True)
    lines.reserve("turn-2/reply")
    journal = polled(tmp_path)
    (conversation,) = conversations_of(tmp_path, TRIAL, journal)
    assert (conversation.source, conversation.name) == (SourceKind.JOURNAL, JOB)
    events = [*read_events(conversation, journal)]
    assert [
        (event.kind.value, event.turn, event.text, event.call_id, event.is_error) for event in events
    ] == [
        ("text", 1, "I look", "", False),
        ("call", 1, '{"command": "ls"}', "c1", False),
        ("call", 1, '{"command": "rm"}', "c2", False),
        ("result", 1, "a", "c1", False),
        ("result", 1, "no", "c2", True),
    ]
    facts = events[0].reply
    assert facts is not None
    assert (facts.model, facts.stop, facts.sent_at, facts.duration_s) == ("m-1", "tool_use", 1001, 3)
    assert [*read_events(conversation)] == events


def test_missing_reply_is_named(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    reply = lines.reserve("turn-1/reply")
    lines.add(
        "settled", call=reply, usd="0.1", tokens=1, value={"stored": "0" * 64, "call": reply, "usage": None}
    )
    (conversation,) = conversations_of(tmp_path, JOB, polled(tmp_path))
    (event,) = read_events(conversation)
    assert (event.kind, event.text) == (EventKind.PROBLEM, "the reply turn-1/reply is missing or damaged")


def test_transcripts_of_the_loop_have_costs_of_the_journal(tmp_path: Path) -> None:
    lines = JournalLines(tmp_path)
    lines.job()
    lines.settle(lines.reserve("turn-1/reply"), text("one"))
    path = tmp_path / f"transcripts/{JOB}.jsonl"
    path.parent.mkdir(parents=True)
    reply = {"role": "assistant", "content": [text("one")]}
    path.write_text("".join(json.dumps(line) + "\n" for line in ({"model": "m", "system": "s"}, reply)))
    journal = polled(tmp_path)
    (conversation,) = conversations_of(tmp_path, JOB, journal)
    *_, event = read_events(conversation, journal)
    assert event.reply is not None
    assert (str(event.reply.cost_usd), event.reply.effect, event.at) == ("0.25", "turn-1/reply", 1000)
    *_, without = read_events(conversation)
    assert without.reply is not None
    assert without.reply.cost_usd is None


@pytest.mark.parametrize(
    ("effect", "part"),
    [
        ("turn-3/reply", ""),
        ("turn-3/tool-2", ""),
        ("call-1/reply", ""),
        ("reply-2", ""),
        ("plan-attempt-2/turn-1/reply", "plan-attempt-2"),
        ("round-1/developer/turn-2/reply", "developer"),
        ("round-2/reviewer/turn-1/tool-1", "review-2"),
        ("gateway/attempt-1/call-1", None),
        ("round-1/evidence", None),
    ],
)
def test_part_of_an_effect(effect: str, part: str | None) -> None:
    assert effect_part(effect) == part


def test_logs_of_published_outputs_are_conversations(tmp_path: Path) -> None:
    (tmp_path / "inference.out").write_text("OpenAI Codex\n")
    (tmp_path / "plan.out").write_text('{"model": "m", "system": "s", "tools": []}\n')
    (tmp_path / "judge.out").write_text('{"transcript": 2}\n')
    assert [(each.step, each.source.value) for each in conversations_of_logs(tmp_path)] == [
        ("plan", "loop"),
        ("judge", "gateway"),
        ("execute", "output"),
    ]
