"""``kill -9`` of the real command at random moments, each followed by a resume, until the run is done."""

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
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.llm.provider import server as provider

SEED = int(os.environ.get("CODETASTE_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)


def run_with_kills(workspace: Workspace, kills: int, steps: int, rng: random.Random) -> CommandResult:
    """Kill the command ``kills`` times, spread over ``steps`` steps of work; then let it finish."""
    for target in (steps / kills * rng.uniform(number, number + 1) for number in range(kills)):
        process = workspace.start("--json")
        if target < 1:
            time.sleep(rng.uniform(0.05, 1.5))
        else:
            tiny_benchmark.wait_for_progress(process, workspace.out, target)
            time.sleep(rng.uniform(0, 0.25))
        err = tiny_benchmark.kill(process)
        print(f"killed at {target:.1f} of {steps} steps, status {process.returncode}")  # noqa: T201
        assert process.returncode in {-9, 0}, err
    return workspace.run("--json")


def check_accounts(
    workspace: Workspace, model: str, limits: dict[tuple[str, ...], Decimal]
) -> tiny_benchmark.Accounts:
    """Check the accounts of a run of a scripted model, which may have been killed."""
    lines, ledger = workspace.journal(), workspace.ledger(model)
    accounts = tiny_benchmark.fold_journal(lines, limits)
    tiny_benchmark.assert_no_finished_job_ran_twice(lines)
    tiny_benchmark.assert_no_call_billed_twice(ledger)
    billed = sum((Fraction(line["cost_usd"]) for line in ledger), Fraction(0))
    assert Fraction(accounts.total("settled")) == billed > 0
    assert accounts.total("reserved", "unknown") == 0
    return accounts


def check_same_result(
    workspace: Workspace, result: CommandResult, uninterrupted: Workspace, uninterrupted_run: CommandResult
) -> None:
    assert result.code == uninterrupted_run.code == 0, result.err
    assert workspace.rules() == uninterrupted.rules()
    assert len(workspace.rules()) == 2
    found = {key: job["value"] for key, job in result.jobs.items()}
    assert found == {key: job["value"] for key, job in uninterrupted_run.jobs.items()}
    assert result.json["money"]["settled_usd"] == uninterrupted_run.json["money"]["settled_usd"]
    published = sorted(
        str(path.relative_to(uninterrupted.out)) for path in (uninterrupted.out / "discover").rglob("*")
    )
    assert published == sorted(
        str(path.relative_to(workspace.out)) for path in (workspace.out / "discover").rglob("*")
    )


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_quickstart_killed_ten_times_finds_same_rules_and_cost(
    tmp_path: Path, quickstart: tuple[Workspace, CommandResult]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    uninterrupted, uninterrupted_run = quickstart
    workspace = Workspace(tmp_path, uninterrupted.cache, uninterrupted.config, uninterrupted.name)
    result = run_with_kills(
        workspace, 10, tiny_benchmark.count_steps(uninterrupted.journal()), random.Random(SEED)
    )
    check_same_result(workspace, result, uninterrupted, uninterrupted_run)
    node = next(tuple(line["path"])[:2] for line in workspace.journal() if line["event"] == "reserved")
    assert node == ("discover", "scripted/pytest-dev__pluggy-15b2acde")
    check_accounts(workspace, "scripted", {(): Decimal("2.0"), node: Decimal("1.0")})


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_run_killed_ten_times_equals_uninterrupted_run(
    tmp_path: Path, alpha: TinyBenchmark, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    uninterrupted, uninterrupted_result = uninterrupted_run
    # An empty cache: some of the kills interrupt the download of the sources.
    workspace = Workspace(tmp_path, tmp_path / "cache", uninterrupted.config)
    result = run_with_kills(
        workspace, 10, tiny_benchmark.count_steps(uninterrupted.journal()), random.Random(SEED)
    )
    check_same_result(workspace, result, uninterrupted, uninterrupted_result)
    node = ("discover", f"m/{alpha.row.id}")
    accounts = check_accounts(workspace, "m", {(): Decimal("2.0"), node: Decimal("1.0")})
    assert accounts.highest[node] == accounts.highest[()]
    again = workspace.run("--json")
    assert [job["resumed"] for job in again.json["jobs"]] == [True, True]
    assert len(workspace.ledger("m")) == 2 * 6


def anthropic_table(url: str) -> str:
    return (
        f'provider = "anthropic"\nmodel = "some-model"\nbase_url = "{url}"\n'
        f'api_key_env = "FAKE_KEY"\nprice = {tiny_benchmark.PRICE}\n'
    )


async def scripted_reply(exchange: provider.Exchange) -> None:
    """Reply like the scripted model of the tiny benchmark, in the protocol of Anthropic."""
    from codetaste.llm.messages import Message, Request, TextBlock, ToolCall
    from support.flows import discovery_models

    body = exchange.body
    messages = tuple(Message(message["role"], (TextBlock("x"),)) for message in body["messages"])
    system = body["system"] if isinstance(body["system"], str) else body["system"][0]["text"]
    reply = discovery_models.reply(Request(system=system, messages=messages))
    blocks: list[dict[str, Any]] = [
        {
            "type": "tool_use",
            "id": f"toolu_{len(messages)}",
            "name": block.name,
            "input": dict(block.arguments),
        }
        if isinstance(block, ToolCall)
        else {"type": "text", "text": getattr(block, "text", "")}
        for block in reply.content
    ]
    # The bill precedes the reply: a kill in between leaves a billed call without a reply.
    usage = provider.count_usage(body, blocks)
    exchange.charge(usage)
    await anyio.sleep(0.15)
    await exchange.stream(provider.events_of(body, blocks, "tool_use", usage))


def billed_usd(server: provider.Server) -> Fraction:
    with server.lock:
        return sum((Fraction(3 * one.prompt + 15 * one.output, 10**6) for one in server.bill), Fraction(0))


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_real_provider_bill_stays_in_budget_and_is_journalled(tmp_path: Path, alpha: TinyBenchmark) -> None:
    """The provider bills calls in flight at a kill; the run records them as unknown."""
    print(f"CODETASTE_SEED={SEED}")  # noqa: T201
    rng = random.Random(SEED)
    with provider.serving() as server:
        server.default = scripted_reply
        workspace = alpha.make_workspace(
            tmp_path,
            {"real": anthropic_table(server.url)},
            discover="budget_usd = 0.9\n",
            run="budget_usd = 0.8",
        )
        workspace.env["FAKE_KEY"] = "sk-ant-not-a-real-key"
        result = run_with_kills(workspace, 3, 36, rng)
        accounts = tiny_benchmark.fold_journal(workspace.journal(), {(): Decimal("0.8")})
        billed = billed_usd(server)
        assert result.code == 0, result.err
        assert Fraction(accounts.total("settled")) <= billed
        assert billed <= Fraction(accounts.total("settled")) + Fraction(accounts.total("unknown", "reserved"))
        assert billed <= Fraction("0.8")
    assert Decimal(result.json["money"]["unknown_usd"]) == accounts.total("unknown", "reserved")
    tiny_benchmark.assert_no_finished_job_ran_twice(workspace.journal())
    turns = [line["call"].rpartition("#")[0] for line in workspace.journal() if line["event"] == "reserved"]
    settled = {line["call"].rpartition("#")[0] for line in workspace.journal() if line["event"] == "settled"}
    assert settled == set(turns)
    assert len(settled) == 2 * 6
    assert "sk-ant-not-a-real-key" not in read_all(workspace.out)


def read_all(folder: Path) -> str:
    return "\n".join(path.read_text(errors="replace") for path in folder.rglob("*") if path.is_file())


def test_torn_last_journal_line_is_cut_off_and_reported(
    tmp_path: Path, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    uninterrupted, _ = uninterrupted_run
    shutil.copytree(uninterrupted.out, tmp_path / "runs" / "r")
    workspace = Workspace(tmp_path, uninterrupted.cache, uninterrupted.config)
    journal = workspace.out / "journal.jsonl"
    whole = journal.read_bytes()
    lines = whole.splitlines(keepends=True)
    last_reply = max(number for number, line in enumerate(lines) if b'"settled"' in line)
    journal.write_bytes(b"".join(lines[:last_reply]) + lines[last_reply][:50])
    billed_calls = len(workspace.ledger("m"))
    result = workspace.run("--json")
    assert result.code == 0
    assert result.err.count("torn last line of 50 bytes was cut off") == 1
    assert len(workspace.ledger("m")) == billed_calls  # the ledger of the model has the lost reply
    assert workspace.rules() == uninterrupted.rules()


def test_damaged_journal_line_is_reported_and_left_unchanged(
    tmp_path: Path, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    uninterrupted, _ = uninterrupted_run
    shutil.copytree(uninterrupted.out, tmp_path / "runs" / "r")
    workspace = Workspace(tmp_path, uninterrupted.cache, uninterrupted.config)
    journal = workspace.out / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"event": "sett\n'
    journal.write_bytes(b"".join(lines))
    result = workspace.run()
    assert result.code == 1
    message = result.err.splitlines()[-1]
    assert message.startswith("codetaste: ")
    assert "journal.jsonl, line 4" in message
    assert journal.read_bytes() == b"".join(lines)
    assert workspace.cli("status", "r").code == 1


@pytest.mark.heavy
def test_second_process_is_refused_with_pid_of_first(tmp_path: Path, alpha: TinyBenchmark) -> None:
    workspace = alpha.make_workspace(tmp_path, {"m": "sleeper"})
    first = workspace.start()
    tiny_benchmark.wait_for_progress(first, workspace.out, 3)
    second = workspace.run()
    assert second.code == 1
    assert second.out == ""
    message = second.err.splitlines()[-1]
    assert message.startswith("codetaste: ")
    assert str(first.pid) in message
    assert "runs/r" in message
    status = workspace.cli("status", "r")
    assert status.code == 0
    assert str(first.pid) in status.out
    assert workspace.cli("status", "r", "--json").json["owner"]
    tiny_benchmark.kill(first)
    assert workspace.cli("status", "r", "--json").json["owner"] is None
    assert "interrupted" in workspace.cli("status", str(workspace.out)).out
