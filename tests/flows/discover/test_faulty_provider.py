"""Runs with models of faulty providers, in all three protocols, beside models of good providers."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import pytest

from support.flows import tiny_benchmark
from support.flows.tiny_benchmark import CommandResult, TinyBenchmark, Workspace
from support.llm.provider import faults
from support.llm.provider import server as provider
from support.llm.provider.protocols import system_and_reply_count

pytestmark = pytest.mark.heavy

KEY = "not-a-real-key"
PRICES = "{ input = 3, output = 15, cache_read = 0.3, cache_write = 3.75 }"
MISLEADING = {
    "OPENAI_API_KEY": "sk-another",
    "OPENAI_BASE_URL": "http://127.0.0.1:9/v1",
    "OPENAI_ORG_ID": "org-another",
    "ANTHROPIC_API_KEY": "sk-another",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "HTTP_PROXY": "http://127.0.0.1:9",
    "ALL_PROXY": "http://127.0.0.1:9",
}


async def scripted_reply(exchange: provider.Exchange) -> None:
    """Reply like the scripted model of the tiny benchmark, in the protocol of the request."""
    from codetaste.llm.messages import Message, Request, TextBlock, ToolCall
    from support.flows import discovery_models

    system, replies = system_and_reply_count(exchange.protocol, exchange.body)
    before = tuple(Message("assistant", (TextBlock("x"),)) for _ in range(replies))
    blocks: list[dict[str, Any]] = []
    for block in discovery_models.reply(Request(system=system, messages=before)).content:
        if isinstance(block, ToolCall):
            call = {"id": f"call_{replies}", "name": block.name, "input": dict(block.arguments)}
            blocks.append({"type": "tool_use", **call})
        else:
            blocks.append(provider.text(getattr(block, "text", "")))
    await provider.send_reply(exchange, *blocks, stop="tool_use", chunked=True)


def cut_every(every: int) -> provider.Handler:
    """Cut every ``every``-th stream, and reply to the other requests."""
    number, rng = itertools.count(1), Random(1)

    async def act(exchange: provider.Exchange) -> None:
        if next(number) % every:
            await scripted_reply(exchange)
        else:
            await faults.cut_in_stream(exchange, rng)

    return act


async def html(exchange: provider.Exchange) -> None:
    await faults.html(200)(exchange, Random(1))


def model_table(server: provider.Server, protocol: str, more: str = "") -> str:
    """The ``[[models]]`` entry of a model of ``server``."""
    url = server.url if protocol == "anthropic" else f"{server.url}/v1"
    return (
        f'provider = "{protocol}"\nmodel = "some-model"\nbase_url = "{url}"\napi_key_env = "FAKE_KEY"\n'
        f"price = {PRICES}\n{more}\n"
    )


@dataclass(frozen=True)
class FaultyRun:
    workspace: Workspace
    result: CommandResult
    servers: dict[str, provider.Server]

    def pair(self, model: str, alpha: TinyBenchmark) -> list[dict[str, Any]]:
        return [self.result.jobs[alpha.key(model, side)] for side in ("additive", "reductive")]

    def calls(self, model: str) -> dict[str, str]:
        """The last journal event of each call of a model."""
        lines = [
            line for line in self.workspace.journal() if line.get("call", "").startswith(f"discover/{model}/")
        ]
        return {line["call"]: line["event"] for line in lines}


def run_models(
    folder: Path, alpha: TinyBenchmark, models: dict[str, tuple[provider.Server, str, str]]
) -> FaultyRun:
    tables = {name: model_table(*model) for name, model in models.items()}
    for name, (server, _, _) in models.items():
        server.name, server.strict = f"{name}_", True
    workspace = alpha.make_workspace(folder, tables, run="budget_usd = 20.0", discover="budget_usd = 5.0")
    workspace.env |= MISLEADING | {"FAKE_KEY": KEY}
    result = workspace.run("--json", timeout_s=400)
    return FaultyRun(workspace, result, {name: server for name, (server, _, _) in models.items()})


@pytest.fixture(scope="module")
def faulty_run(tmp_path_factory: pytest.TempPathFactory, alpha: TinyBenchmark) -> Iterator[FaultyRun]:
    """One run with two good models, one that cuts every third stream, and two that never reply."""
    with (
        provider.serving() as good,
        provider.serving() as other,
        provider.serving() as cut,
        provider.serving() as busy,
        provider.serving() as page,
    ):
        good.default = other.default = scripted_reply
        cut.default, page.default = cut_every(3), html
        busy.default = provider.status(429, retry_after="0.5")
        yield run_models(
            tmp_path_factory.mktemp("bad"),
            alpha,
            {
                "good": (good, "anthropic", ""),
                "other": (other, "openai-chat", ""),
                "cut": (cut, "openai", ""),
                "busy": (busy, "openai", 'rate_limit_timeout = "2s"'),
                "page": (page, "openai-chat", ""),
            },
        )


@pytest.mark.timeout(600)
def test_run_exits_1_and_names_failed_jobs_and_causes(faulty_run: FaultyRun, alpha: TinyBenchmark) -> None:
    assert faulty_run.result.code == 1
    outcomes = {
        model: {(job["status"], job["cause"]) for job in faulty_run.pair(model, alpha)}
        for model in faulty_run.servers
    }
    assert outcomes == {
        "good": {("done", None)},
        "other": {("done", None)},
        "cut": {("done", None)},
        "busy": {("failed", "rate_limit")},
        "page": {("failed", "malformed")},
    }
    for model, cause in {"busy": "429", "page": "text/html"}.items():
        for job in faulty_run.pair(model, alpha):
            assert cause in job["error"]
            assert "\n" not in job["error"]
    shown = faulty_run.workspace.cli("status", "r").out
    assert "429" in shown
    assert "html" in shown


def test_every_model_with_replies_has_rules(
    faulty_run: FaultyRun, uninterrupted_run: tuple[Workspace, CommandResult]
) -> None:
    expected = {name.removeprefix("m/"): text for name, text in uninterrupted_run[0].rules().items()}
    found = faulty_run.workspace.rules()
    for model in ("good", "other", "cut"):
        prefix = f"{model}/"
        assert {
            name.removeprefix(prefix): text for name, text in found.items() if name.startswith(prefix)
        } == (expected)
    assert not any(name.startswith(("busy/", "page/")) for name in found)


def test_requests_to_bad_providers_are_bounded(faulty_run: FaultyRun) -> None:
    requests = {model: len(server.bodies) for model, server in faulty_run.servers.items()}
    assert requests["good"] == requests["other"] == 2 * 6
    assert 3 <= requests["page"] <= 2 * 3
    assert requests["cut"] == 2 * 6 + 5
    assert 3 <= requests["busy"] <= 12
    assert not any(server.complaints for server in faulty_run.servers.values())


def test_accounts_of_each_model_contain_its_bill(faulty_run: FaultyRun) -> None:
    accounts = tiny_benchmark.fold_journal(faulty_run.workspace.journal(), {(): Decimal(20)})
    billed = {model: server.billed_usd for model, server in faulty_run.servers.items()}
    settled: dict[str, Decimal] = {}
    for model in faulty_run.servers:
        mine = [call for key, call in accounts.calls.items() if key.startswith(f"discover/{model}/")]
        settled[model] = sum((usd for _, usd, state in mine if state == "settled"), Decimal(0))
        unknown = sum((usd for _, usd, state in mine if state == "unknown"), Decimal(0))
        assert settled[model] <= billed[model] <= settled[model] + unknown
        assert not any(state == "reserved" for _, _, state in mine)
    assert settled["good"] == billed["good"] > 0
    assert settled["other"] == billed["other"] > 0
    assert list(faulty_run.calls("cut").values()).count("unknown") == 5
    assert set(faulty_run.calls("page").values()) == {"unknown"}
    assert set(faulty_run.calls("busy").values()) == {"released"}
    assert Decimal(faulty_run.result.json["money"]["settled_usd"]) == sum(settled.values())


def test_providers_receive_only_the_configured_key(faulty_run: FaultyRun) -> None:
    for server in faulty_run.servers.values():
        for headers in server.headers:
            assert KEY in {
                headers.get("x-api-key", ""),
                headers.get("authorization", "").removeprefix("Bearer "),
            }
            assert not any("another" in value for value in headers.values())
    for path in faulty_run.workspace.out.rglob("*"):
        if path.is_file():
            assert KEY not in path.read_text(errors="replace"), path
    assert KEY not in faulty_run.result.out + faulty_run.result.err


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_provider_cutting_every_stream_is_given_up_after_three_in_a_row(
    tmp_path: Path, alpha: TinyBenchmark
) -> None:
    with provider.serving() as good, provider.serving() as cut, provider.serving() as stall:
        good.default, cut.default = scripted_reply, cut_every(1)
        stall.default = provider.stall(provider.text("x"), after=1)
        finished = run_models(
            tmp_path,
            alpha,
            {
                "good": (good, "openai", ""),
                "cut": (cut, "anthropic", ""),
                "stall": (stall, "openai-chat", 'timeout = "1s"'),
            },
        )
    assert finished.result.code == 1
    assert [job["status"] for job in finished.pair("good", alpha)] == ["done", "done"]
    for model in ("cut", "stall"):
        assert [job["cause"] for job in finished.pair(model, alpha)] == ["unavailable"] * 2
        requests = len(finished.servers[model].bodies)
        assert 3 <= requests <= 2 * 3
        assert list(finished.calls(model).values()) == ["unknown"] * requests
