"""Settle calls of unknown cost with the amount on the provider's bill."""

from __future__ import annotations

import json
import time
from decimal import Decimal
from pathlib import Path

import pytest

from codetaste.cli.commands.runs.settle import settle
from support.cli.invoke import codetaste
from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import TinyBenchmark


def test_one_unknown_call_is_listed_in_the_singular(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reserved = {"event": "reserved", "call": "a/t#1", "key": "a", "fingerprint": "f", "effect": "t"}
    lines = [
        {"event": "journal", "format": 2},
        {**reserved, "path": ["a"], "usd": "0.5", "tokens": 9, "note": {"model": "m"}},
    ]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert settle(tmp_path) == 0
    total = "1 call of unknown cost, $0.50 at most, counts against the budget\n"
    assert capsys.readouterr().out.endswith(total)


def journal_of_unknown_calls(folder: Path) -> None:
    lines: list[dict[str, object]] = [{"event": "journal", "format": 2}]
    for key in ("discover/m/a/additive", "discover/m/b/additive", "discover/other/a/additive"):
        for number in (1, 2):
            call = {"call": f"{key}/turn-1/reply#{number}", "key": key, "fingerprint": "f", "effect": "t"}
            lines.append({"event": "reserved", **call, "path": [key], "usd": "0.5", "tokens": 9})
    (folder / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


@pytest.mark.parametrize(
    ("arguments", "settled", "left"),
    [
        (["--all", "--usd", "0"], 6, "0 calls of unknown cost"),
        (["discover/m/*", "--usd", "0"], 4, "2 calls of unknown cost, $1.00 at most"),
        (["*#2", "--usd", "0.25"], 3, "3 calls of unknown cost, $1.50 at most"),
        (["discover/other/a/additive/turn-1/reply#1", "--usd", "0"], 1, "5 calls of unknown cost"),
    ],
)
def test_all_unknown_calls_or_those_of_a_glob_are_settled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], settled: int, left: str
) -> None:
    journal_of_unknown_calls(tmp_path)
    out = codetaste(capsys, "settle", tmp_path, *arguments)
    assert (out.count("settled: "), left in out) == (settled, True)
    lines = [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]
    paid = [(line["usd"], line["tokens"]) for line in lines if line["event"] == "settled"]
    assert paid == [(arguments[-1], 0 if arguments[-1] == "0" else 9)] * settled


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--all"], "give a call, a glob or --all, and a cost"),
        (["--usd", "0"], "give a call, a glob or --all, and a cost"),
        (["discover/m/*", "--all", "--usd", "0"], "give a call, a glob or --all, and a cost"),
        (["infer/*", "--usd", "0"], "none of unknown cost matches it"),
    ],
)
def test_unclear_settlement_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    journal_of_unknown_calls(tmp_path)
    assert message in codetaste(capsys, "settle", tmp_path, *arguments, code=2)


@pytest.mark.heavy
def test_settle_unknown_call_once_restores_budget(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "long"}, discover="")
    process = workspace.start()
    deadline = time.monotonic() + 200
    while sum(line["event"] == "reserved" for line in workspace.journal()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    busy = workspace.cli("settle", "r")
    assert busy.code == 1
    assert f"in use by process {process.pid}" in busy.err
    tiny_benchmark.kill(process)

    document = workspace.cli("settle", "r", "--json").json
    assert len(document["unknown"]) == 2
    assert {call["model"] for call in document["unknown"]} == {"m"}
    first, second = (call["call"] for call in document["unknown"])
    for args, message in (
        ([first], "give a call, a glob or --all"),
        ([first, "--usd", "much"], "--usd: 'much' is not an amount"),
        ([first[:-1] + "7", "--usd", "1"], "the run made no call"),
    ):
        result = workspace.cli("settle", "r", *args)
        assert (result.code, message in result.err) == (2, True)
    result = workspace.cli("settle", "r", first, "--usd", "0.0123", "--json")
    assert result.json["settled"] == {"call": first, "usd": "0.0123"}
    assert [call["call"] for call in result.json["unknown"]] == [second]
    again = workspace.cli("settle", "r", first, "--usd", "0.5")
    assert (again.code, "cost $0.0123" in again.err) == (2, True)
    status = workspace.cli("status", "r", "--json").json
    assert Decimal(status["money"]["settled_usd"]) == Decimal("0.0123")
    assert status["money"]["unknown_usd"] == result.json["unknown_usd"]
    tiny_benchmark.fold_journal(workspace.journal(), {(): Decimal(2)})

    finished = workspace.run("--json")
    assert finished.code == 0
    lines = {line["call"]: line["usd"] for line in workspace.journal() if line["event"] == "settled"}
    assert lines[first] == "0.0123"
    assert Decimal(finished.json["money"]["settled_usd"]) == sum(map(Decimal, lines.values()))
