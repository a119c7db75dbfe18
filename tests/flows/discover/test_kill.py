"""``kill -9`` of the real command at random moments, each followed by the same command until it is done."""

from __future__ import annotations

import os
import random
import shutil
import time
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import anyio
import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import Ended, Place, Tiny
from support.llm.provider import server as provider

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


def run_with_kills(where: Place, kills: int, steps: int, rng: random.Random) -> Ended:
    """Kill the command ``kills`` times, spread over ``steps`` steps of work; then let it finish."""
    for target in (steps / kills * rng.uniform(number, number + 1) for number in range(kills)):
        process = where.start("--json")
        if target < 1:
            time.sleep(rng.uniform(0.05, 1.5))
        else:
            tiny_benchmark.wait_for_progress(process, where.out, target)
            time.sleep(rng.uniform(0, 0.25))
        err = tiny_benchmark.kill(process)
        print(f"killed at {target:.1f} of {steps} steps, status {process.returncode}")  # noqa: T201
        assert process.returncode in {-9, 0}, err
    return where.run("--json")


def check_books(where: Place, model: str, limits: dict[tuple[str, ...], Decimal]) -> tiny_benchmark.Books:
    """What holds for any run of a scripted model, however often it was killed."""
    lines, ledger = where.journal(), where.ledger(model)
    books = tiny_benchmark.folded(lines, limits)
    tiny_benchmark.assert_no_finished_job_ran_twice(lines)
    tiny_benchmark.assert_nothing_bought_twice(ledger)
    billed = sum((Fraction(line["cost_usd"]) for line in ledger), Fraction(0))
    assert Fraction(books.total("settled")) == billed > 0
    assert books.total("reserved", "unknown") == 0
    return books


def check_same_result(where: Place, done: Ended, other: Place, undisturbed: Ended) -> None:
    assert done.code == undisturbed.code == 0, done.err
    assert where.rules() == other.rules()
    assert len(where.rules()) == 2
    found = {key: job["value"] for key, job in done.jobs.items()}
    assert found == {key: job["value"] for key, job in undisturbed.jobs.items()}
    assert done.json["money"]["settled_usd"] == undisturbed.json["money"]["settled_usd"]
    published = sorted(str(path.relative_to(other.out)) for path in (other.out / "discover").rglob("*"))
    assert published == sorted(
        str(path.relative_to(where.out)) for path in (where.out / "discover").rglob("*")
    )


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_quickstart_killed_ten_times_finds_same_rules_and_cost(
    tmp_path: Path, quickstart: tuple[Place, Ended]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    other, undisturbed = quickstart
    where = Place(tmp_path, other.cache, other.config, other.name)
    done = run_with_kills(where, 10, tiny_benchmark.progress(other.journal()), random.Random(SEED))
    check_same_result(where, done, other, undisturbed)
    node = next(tuple(line["path"])[:2] for line in where.journal() if line["event"] == "reserved")
    assert node == ("discover", "scripted/pytest-dev__pluggy-15b2acde")
    check_books(where, "scripted", {(): Decimal("2.0"), node: Decimal("1.0")})


@pytest.mark.heavy
@pytest.mark.timeout(200)
def test_a_run_killed_ten_times_ends_as_one_that_nothing_happened_to(
    tmp_path: Path, alpha: Tiny, undisturbed: tuple[Place, Ended]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    other, ended = undisturbed
    # A cache of its own: some of the kills hit the bringing of the sources.
    where = Place(tmp_path, tmp_path / "cache", other.config)
    done = run_with_kills(where, 10, tiny_benchmark.progress(other.journal()), random.Random(SEED))
    check_same_result(where, done, other, ended)
    node = ("discover", f"m/{alpha.row.id}")
    books = check_books(where, "m", {(): Decimal("2.0"), node: Decimal("1.0")})
    assert books.highest[node] == books.highest[()]
    again = where.run("--json")
    assert [job["resumed"] for job in again.json["jobs"]] == [True, True]
    assert len(where.ledger("m")) == 2 * 6


def as_anthropic(where: Place, url: str, price: str = tiny_benchmark.PRICE) -> str:
    return (
        f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{url}"\n'
        f'api_key_env = "FAKE_KEY"\nprice = {price}\n'
    )


async def played(exchange: provider.Exchange) -> None:
    """Answers as the scripted model of the tiny benchmark does, by the protocol of Anthropic."""
    from codetaste.llm.messages import Message, Request, TextBlock, ToolCall
    from support.flows import discovery_models

    body = exchange.body
    messages = tuple(Message(said["role"], (TextBlock("x"),)) for said in body["messages"])
    system = body["system"] if isinstance(body["system"], str) else body["system"][0]["text"]
    said = discovery_models.reply(Request(system=system, messages=messages))
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_use",
            "id": f"toolu_{len(messages)}",
            "name": block.name,
            "input": dict(block.arguments),
        }
        if isinstance(block, ToolCall)
        else {"type": "text", "text": getattr(block, "text", "")}
        for block in said.content
    ]
    # Billed first and answered later: a kill in between leaves a bill for a reply that nobody has read.
    usage = provider.count_usage(body, blocks)
    exchange.charge(usage)
    await anyio.sleep(0.15)
    await exchange.stream(provider.events_of(body, blocks, "tool_use", usage))


def billed_usd(server: provider.Server) -> Fraction:
    with server.lock:
        return sum((Fraction(3 * one.prompt + 15 * one.output, 10**6) for one in server.bill), Fraction(0))


@pytest.mark.heavy
@pytest.mark.timeout(200)
def test_real_provider_bill_stays_in_budget_and_is_journalled(tmp_path: Path, alpha: Tiny) -> None:
    """Calls that are in flight at a kill are billed by the provider and unknown to the run."""
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    rng = random.Random(SEED)
    with provider.serving() as server:
        server.default = played
        where = alpha.place(
            tmp_path,
            {"real": as_anthropic(Place(tmp_path, tmp_path, tmp_path), server.url)},
            discover="budget_usd = 0.9\n",
            run="budget_usd = 0.8",
        )
        where.env["FAKE_KEY"] = "sk-ant-not-a-real-key"
        done = run_with_kills(where, 3, 36, rng)
        books = tiny_benchmark.folded(where.journal(), {(): Decimal("0.8")})
        billed = billed_usd(server)
        assert done.code == 0, done.err
        assert Fraction(books.total("settled")) <= billed
        assert billed <= Fraction(books.total("settled")) + Fraction(books.total("unknown", "reserved"))
        assert billed <= Fraction("0.8")
    assert Decimal(done.json["money"]["unknown_usd"]) == books.total("unknown", "reserved")
    tiny_benchmark.assert_no_finished_job_ran_twice(where.journal())
    turns = [line["call"].rpartition("#")[0] for line in where.journal() if line["event"] == "reserved"]
    settled = {line["call"].rpartition("#")[0] for line in where.journal() if line["event"] == "settled"}
    assert settled == set(turns)
    assert len(settled) == 2 * 6
    assert "sk-ant-not-a-real-key" not in everything_in(where.out)


def everything_in(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_torn_last_journal_line_is_cut_off_and_reported(
    tmp_path: Path, undisturbed: tuple[Place, Ended]
) -> None:
    other, _ = undisturbed
    shutil.copytree(other.out, tmp_path / "runs" / "r")
    where = Place(tmp_path, other.cache, other.config)
    journal = where.out / "journal.jsonl"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    last_reply = max(number for number, line in enumerate(lines) if b'"settled"' in line)
    journal.write_bytes(b"".join(lines[:last_reply]) + lines[last_reply][:50])
    bought = len(where.ledger("m"))
    done = where.run("--json")
    assert done.code == 0
    assert done.err.count("torn last line of 50 bytes was cut off") == 1
    assert len(where.ledger("m")) == bought  # the lost reply was found on the model's own record
    assert where.rules() == other.rules()


def test_damaged_journal_line_is_reported_and_left_unchanged(
    tmp_path: Path, undisturbed: tuple[Place, Ended]
) -> None:
    other, _ = undisturbed
    shutil.copytree(other.out, tmp_path / "runs" / "r")
    where = Place(tmp_path, other.cache, other.config)
    journal = where.out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"event": "sett\n'
    journal.write_bytes(b"".join(lines))
    done = where.run()
    assert done.code == 1
    said = done.err.splitlines()[-1]
    assert said.startswith("codetaste: ")
    assert "journal.jsonl, line 4" in said
    assert journal.read_bytes() == b"".join(lines)
    assert where.cli("status", "r").code == 1


def test_two_processes_cannot_work_on_one_run_and_the_second_says_who_does(
    tmp_path: Path, alpha: Tiny
) -> None:
    where = alpha.place(tmp_path, {"m": "sleeper"})
    first = where.start()
    tiny_benchmark.wait_for_progress(first, where.out, 3)
    second = where.run()
    assert second.code == 1
    assert second.out == ""
    said = second.err.splitlines()[-1]
    assert said.startswith("codetaste: ")
    assert str(first.pid) in said
    assert "runs/r" in said
    status = where.cli("status", "r")
    assert status.code == 0
    assert str(first.pid) in status.out
    assert where.cli("status", "r", "--json").json["owner"]
    tiny_benchmark.kill(first)
    assert where.cli("status", "r", "--json").json["owner"] is None
    assert "interrupted" in where.cli("status", str(where.out)).out
