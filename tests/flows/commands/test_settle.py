"""What a call of unknown cost did cost is settled by somebody who has seen the bill."""

from __future__ import annotations

import time
from decimal import Decimal
from pathlib import Path

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Tiny


@pytest.mark.heavy
def test_settle_unknown_call_once_restores_budget(tmp_path: Path, alpha: Tiny) -> None:
    where = alpha.place(tmp_path, {"m": "long"}, discover="")
    process = where.start()
    deadline = time.monotonic() + 200
    while sum(line["event"] == "reserved" for line in where.journal()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    busy = where.cli("settle", "r")
    assert busy.code == 1
    assert f"in use by process {process.pid}" in busy.err
    tiny_benchmark.kill(process)

    told = where.cli("settle", "r", "--json").json
    assert len(told["unknown"]) == 2
    assert {call["model"] for call in told["unknown"]} == {"m"}
    first, second = (call["call"] for call in told["unknown"])
    for args, why in (
        ([first], "give a call and its cost"),
        ([first, "--usd", "much"], "--usd: 'much' is not an amount"),
        ([first[:-1] + "7", "--usd", "1"], "the run made no call"),
    ):
        done = where.cli("settle", "r", *args)
        assert (done.code, why in done.err) == (2, True)
    done = where.cli("settle", "r", first, "--usd", "0.0123", "--json")
    assert done.json["settled"] == {"call": first, "usd": "0.0123"}
    assert [call["call"] for call in done.json["unknown"]] == [second]
    again = where.cli("settle", "r", first, "--usd", "0.5")
    assert (again.code, "cost $0.0123" in again.err) == (2, True)
    status = where.cli("status", "r", "--json").json
    assert Decimal(status["money"]["settled_usd"]) == Decimal("0.0123")
    assert status["money"]["unknown_usd"] == done.json["unknown_usd"]
    tiny_benchmark.folded(where.journal(), {(): Decimal(2)})

    ended = where.run("--json")
    assert ended.code == 0
    lines = {line["call"]: line["usd"] for line in where.journal() if line["event"] == "settled"}
    assert lines[first] == "0.0123"
    assert Decimal(ended.json["money"]["settled_usd"]) == sum(map(Decimal, lines.values()))
