"""Logs of Inspect: samples with messages, events, scores, usage, limits and errors."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from codetaste.errors import JournalError
from codetaste.exports.atif.write import write_trial
from codetaste.exports.inspect.log import write_log
from codetaste.exports.inspect.messages import call_arguments
from codetaste.exports.inspect.sample import make_sample
from codetaste.exports.trial import ExportedTrial, safe_name
from codetaste.results.outcome import OutcomeFacet
from codetaste.transcripts.conversations import conversations_of
from codetaste.transcripts.timeline.journal_reader import JournalReader
from support.transcripts.journal_lines import JOB, JournalLines, call, text


def trial(run: Path, facet: OutcomeFacet = OutcomeFacet.FAILURE, **more: Any) -> ExportedTrial:
    """A trial of the journal in ``run``, if there is one."""
    journal = JournalReader(run)
    journal.poll()
    found = conversations_of(run, JOB.removesuffix("/execute"), journal)
    fields = {"run": "r", "agent": "a", "setting": "open/direct", "instance": "x__y-1", "attempt": 1}
    return ExportedTrial(**{**fields, **more}, facet=facet, conversations=found, journal=journal)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that was killed in its second turn."""
    lines = JournalLines(tmp_path)
    lines.job()
    lines.at = 1001
    lines.start()
    reply = lines.reserve("turn-1/reply")
    lines.at = 1003
    lines.settle(reply, text("I look"), call("c1", command="ls"))
    lines.tool("turn-1/tool-1", "long " * 100, is_error=True)
    lines.reserve("turn-2/reply")
    return tmp_path


def test_sample_has_the_conversation_its_costs_and_its_tools(run: Path) -> None:
    sample, summary = make_sample(trial(run, scores={"A": 0.5, "PASS": None}, cost_usd=0.25))
    reply, result = sample["messages"]
    assert (reply["role"], reply["content"]) == ("assistant", [{"type": "text", "text": "I look"}])
    assert reply["tool_calls"] == [
        {"id": "c1", "function": "bash", "arguments": {"command": "ls"}, "type": "function"}
    ]
    assert (result["role"], result["tool_call_id"], result["function"]) == ("tool", "c1", "bash")
    assert result["error"]["type"] == "unknown"
    kinds = [event["event"] for event in sample["events"]]
    assert kinds == ["span_begin", "model", "tool", "span_end"]
    model, tool = sample["events"][1:3]
    assert model["timestamp"] == "1970-01-01T00:16:43.000000+00:00"
    assert (model["working_start"], tool["arguments"]) == (2, {"command": "ls"})
    # The last call was in flight when the process was killed: the sum is not known.
    assert (sample["model_usage"], sample["metadata"]["unknown_usage"]) == ({}, ["m-1"])
    assert model["output"]["usage"] == {
        "input_tokens": 5,
        "output_tokens": 2,
        "total_tokens": 7,
        "input_tokens_cache_read": 0,
        "input_tokens_cache_write": 0,
        "reasoning_tokens": 0,
        "total_cost": 0.25,
    }
    assert sample["scores"] == {"A": {"value": 0.5, "explanation": "failure"}}
    assert sample["metadata"]["not_measured"] == ["PASS"]
    assert sample["metadata"]["outcome"] == "failure"
    assert (summary["message_count"], summary["turn_count"], summary["scores"]) == (2, 1, sample["scores"])


@pytest.mark.parametrize(
    ("facet", "limit", "error"),
    [
        (OutcomeFacet.TIMEOUT, {"type": "time", "limit": 9.0, "reason": "why"}, None),
        (OutcomeFacet.BUDGET_EXCEEDED, {"type": "cost", "limit": 0.25, "reason": "why"}, None),
        (OutcomeFacet.MAX_TURNS, {"type": "turn", "limit": 1.0, "reason": "why"}, None),
        (OutcomeFacet.INFRASTRUCTURE_ERROR, None, "why"),
        (OutcomeFacet.UNREADABLE, None, "why"),
        (OutcomeFacet.REFUSED, None, None),
        (OutcomeFacet.FAILURE, None, None),
    ],
)
def test_limits_and_errors_differ(
    run: Path, facet: OutcomeFacet, limit: dict[str, Any] | None, error: str | None
) -> None:
    sample, summary = make_sample(trial(run, facet, message="why", time_s=9.0, cost_usd=0.25))
    assert sample.get("limit") == limit
    assert (sample.get("error") or {}).get("message") == error
    assert summary["limit"] == (limit and limit["type"])
    assert summary["error"] == error


def test_log_has_one_file_for_each_sample_and_the_same_bytes_each_time(run: Path, tmp_path: Path) -> None:
    trials = [
        trial(run, scores={"A": 1.0}, instance="o__r-1"),
        trial(run, OutcomeFacet.NOT_ENDED, scores={"A": None}, instance="../<o>", attempt=2),
    ]
    log = write_log(trials, tmp_path / "logs")
    first = log.path.read_bytes()
    assert write_log(trials, tmp_path / "logs").path.read_bytes() == first
    assert log.outcomes == {"failure": 1, "not_ended": 1}
    assert log.path.name.startswith("1970-01-01T00-16-41-00-00_open-direct-a_")
    with zipfile.ZipFile(log.path) as archive:
        assert archive.namelist() == [
            *("samples/o__r-1_epoch_1.json", f"samples/{safe_name('../<o>')}_epoch_2.json"),
            *("_journal/start.json", "summaries.json", "header.json"),
        ]
        header = json.loads(archive.read("header.json"))
    assert header["status"] == "started"
    assert header["eval"]["config"] == {"epochs": 2}
    (score,) = header["results"]["scores"]
    assert (score["name"], score["scored_samples"], score["unscored_samples"]) == ("A", 1, 1)
    assert score["metrics"]["mean"]["value"] == 1.0
    assert header["results"]["completed_samples"] == 1


def test_trial_without_conversation_is_a_sample(tmp_path: Path) -> None:
    sample, _ = make_sample(trial(tmp_path))
    assert (sample["messages"], sample["events"], sample["input"]) == ([], [], "")


@pytest.mark.parametrize(
    ("written", "arguments", "problem"),
    [
        ('{"a": [1]}', {"a": [1]}, False),
        ("", {}, False),
        ('{"a": NaN}', {"a": "NaN"}, False),
        ('{"a": 1e999}', {"text": '{"a": 1e999}'}, True),
        ("[1]", {"text": "[1]"}, True),
        ("rm -rf", {"text": "rm -rf"}, True),
        ("[" * 100_000, {"text": "[" * 100_000}, True),
    ],
)
def test_arguments_are_always_an_object(written: str, arguments: dict[str, Any], problem: bool) -> None:
    found, why = call_arguments(written)
    assert found == arguments
    assert bool(why) == problem


def test_a_file_where_a_folder_is_needed_is_named(run: Path) -> None:
    taken = run / "taken"
    taken.touch()
    with pytest.raises(JournalError, match="taken"):
        write_log([trial(run)], taken)
    with pytest.raises(JournalError, match="taken"):
        write_trial(trial(run), taken / "a" / "b.json")
