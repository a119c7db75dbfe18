"""The clients of all three protocols against a real third-party server.

llama.cpp's server (``xllamacpp``), installed by name into an environment of its own, runs on the loopback and
on one thread. Its model is written by the test: a small transformer with random weights, whose replies are
printable characters without an end.
"""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import anyio
import pytest
from anyio import to_thread

from codetaste.errors import ModelRefused
from codetaste.llm.messages import Message, Request, StopReason, TextBlock, ToolCall, ToolResult, ToolSpec
from codetaste.llm.model import Model
from codetaste.orchestration.budget.cost import BudgetLimits
from codetaste.orchestration.job import JobContext, Status
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.llm.bill_audit import read_journal
from support.llm.bill_run import KEY, KEY_ENV, RATES, make_model
from support.llm.provider.server import PROTOCOLS, Protocol
from support.orchestration.closure_jobs import closure_job

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

PACKAGES = ("xllamacpp", "gguf")
MAKE_MODEL = """
import sys
import gguf
import numpy as np

WIDTH, INNER, LAYERS, HEADS = 128, 512, 6, 4
TOKENS = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *map(chr, range(33, 127))]
KINDS = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
KINDS += [gguf.TokenType.NORMAL] * (len(TOKENS) - len(KINDS))
TEMPLATE = '''{% for tool in tools or [] %}{{ tool | tojson }}
{% endfor %}{% for message in messages %}{{ message.role }}: {{ message.content or "" }}
{% for call in message.tool_calls or [] %}{{ call | tojson }}
{% endfor %}{% endfor %}assistant:'''
writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_context_length(65536)
writer.add_embedding_length(WIDTH)
writer.add_feed_forward_length(INNER)
writer.add_block_count(LAYERS)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_vocab_size(len(TOKENS))
writer.add_tokenizer_model("llama")
writer.add_token_list([token.encode() for token in TOKENS])
writer.add_token_scores([0.0] * len(TOKENS))
writer.add_token_types(KINDS)
writer.add_unk_token_id(0)
writer.add_bos_token_id(1)
writer.add_eos_token_id(2)
writer.add_chat_template(TEMPLATE)
random = np.random.default_rng(7)
shapes = {"token_embd": (len(TOKENS), WIDTH), "output": (len(TOKENS), WIDTH), "output_norm": (WIDTH,)}
for layer in range(LAYERS):
    shapes |= {f"blk.{layer}.{part}_norm": (WIDTH,) for part in ("attn", "ffn")}
    shapes |= {f"blk.{layer}.attn_{part}": (WIDTH, WIDTH) for part in ("q", "k", "v", "output")}
    shapes |= {f"blk.{layer}.ffn_{part}": (INNER, WIDTH) for part in ("gate", "up")}
    shapes[f"blk.{layer}.ffn_down"] = (WIDTH, INNER)
for name, shape in shapes.items():
    weights = np.ones(shape) if name.endswith("norm") else random.normal(0, 0.05, shape)
    if name == "output":
        weights[:259] = 0  # never the most probable ones: replies are printable text without an end
    writer.add_tensor(f"{name}.weight", weights.astype(np.float32))
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
"""
SERVER = """
import sys
import xllamacpp
given = xllamacpp.CommonParams()
given.model.path = sys.argv[1]
given.hostnames, given.port, given.offline, given.ui = ["127.0.0.1"], 0, True, False
given.use_jinja = True
given.n_ctx, given.n_parallel, given.n_threads_http = 65536, 2, 8
given.cpuparams.n_threads = given.cpuparams_batch.n_threads = 1
given.endpoint_slots = given.endpoint_metrics = True
server = xllamacpp.Server(given)
print(server.listening_address, flush=True)
sys.stdin.read()
"""
TOOL = ToolSpec("look", "Look at a place.", {"type": "object", "properties": {"at": {"type": "string"}}})
STORY = "Write a very long story about every number from one to a thousand."
RUN = """
run = { name = "real", budget_usd = 0.5, prompts = "prompts" }
benchmark = { path = "quickstart" }
discover = { models = ["openai-chat", "openai", "anthropic"], max_turns = 2 }
"""
MODEL = """
[[models]]
id = "%s"
provider = "%s"
model = "small"
base_url = "%s"
api_key_env = "%s"
max_output_tokens = 24
price = { input = 3.0, output = 15.0, cache_read = 0.3 }
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory, require: Callable[..., None]) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("real") / "venv"
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--only-binary=:all:", *PACKAGES]
    done = subprocess.run(pip, check=False, capture_output=True, text=True)
    unbuilt = "No matching distribution" in done.stderr and "Retrying" not in done.stderr
    require("llama.cpp", ok=not unbuilt, reason="llama.cpp's server has no build for this machine")
    assert done.returncode == 0, done.stderr
    weights = folder / "random.gguf"
    subprocess.run([python, "-c", MAKE_MODEL, weights], check=True)
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(
            [python, "-c", SERVER, weights], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
        ) as server,
    ):
        try:
            assert server.stdout is not None
            address = server.stdout.readline().decode().strip()
            assert address.startswith("http://127.0.0.1:"), (folder / "log").read_text()
            yield address
        finally:
            server.kill()


@pytest.fixture(params=PROTOCOLS)
def protocol(request: pytest.FixtureRequest) -> Protocol:
    return request.param


@pytest.fixture
def model(url: str, protocol: Protocol, tmp_path: Path) -> Model:
    return make_model("expensive", protocol, url, tmp_path).model


def request_of(words: str, cap: int = 64, *tools: ToolSpec) -> Request:
    messages = (Message("user", (TextBlock(words),)),)
    return Request("Be brief.", messages, tools, max_output_tokens=cap, options={"temperature": 0})


async def wait_until(url: str, *, working: bool) -> None:
    """Wait until the server processes a request, or none."""

    def is_working() -> bool:
        with urllib.request.urlopen(f"{url}/slots") as answer:
            return any(slot["is_processing"] for slot in json.load(answer))

    while await to_thread.run_sync(is_working) is not working:  # noqa: ASYNC110 - it is another process
        await anyio.sleep(0.02)


def token_counts(url: str) -> tuple[int, int]:
    """Return the server's token counts since its start: prompt tokens not from its cache, output tokens."""
    with urllib.request.urlopen(f"{url}/metrics") as answer:
        lines = [line.split() for line in answer.read().decode().splitlines() if line[:1] != "#"]
    counts = {name: float(count) for name, count in lines}
    return int(counts["llamacpp:prompt_tokens_total"]), int(counts["llamacpp:tokens_predicted_total"])


@pytest.mark.anyio
async def test_real_server_conversation_runs_for_several_turns(model: Model) -> None:
    first = request_of("What is the capital of France?")
    reply = await model.complete(first, call="1")
    assert reply.message.text.strip()
    assert reply.usage is not None
    assert 10 < reply.usage.prompt < 200
    assert reply.usage.output == 64
    more = (*first.messages, reply.message, Message("user", (TextBlock("And of Italy?"),)))
    again = await model.complete(Request("Be brief.", more, max_output_tokens=20), call="2")
    assert again.usage is not None
    assert again.usage.prompt > reply.usage.prompt
    await model.aclose()


@pytest.mark.anyio
async def test_real_server_respects_cap_and_reports_it(model: Model, protocol: Protocol) -> None:
    reply = await model.complete(request_of(STORY, 12), call="1")
    assert reply.usage is not None
    assert reply.usage.output == 12
    # In Responses this server calls a reply complete that it has cut.
    assert reply.stop == (StopReason.END if protocol == "openai" else StopReason.LENGTH)
    await model.aclose()


@pytest.mark.anyio
async def test_consecutive_calls_are_all_answered(model: Model) -> None:
    for number in range(24):
        reply = await model.complete(request_of("Hello", 1 + number % 3), call=str(number))
        assert reply.usage is not None
    await model.aclose()


@pytest.mark.anyio
async def test_tools_and_results_are_part_of_the_prompt(model: Model) -> None:
    called = Message("assistant", (ToolCall("call_1", "look", {"at": "the kitchen"}),))
    first = request_of("Look at the kitchen.", 40)
    requests = [first, replace(first, tools=(TOOL,))]
    for text in ("a table", "a table and two chairs"):
        result = Message("user", (ToolResult("call_1", text),))
        requests.append(replace(requests[1], messages=(*first.messages, called, result)))
    sizes = []
    for number, request in enumerate(requests):
        reply = await model.complete(request, call=str(number))
        assert reply.usage is not None
        assert reply.usage.output == 40
        sizes.append(reply.usage.prompt)
    assert sizes == sorted(set(sizes))
    await model.aclose()


@pytest.mark.anyio
async def test_prompt_over_context_is_refused_and_unbilled(model: Model) -> None:
    with pytest.raises(ModelRefused, match=r"HTTP 400: .*the conversation is too long") as caught:
        await model.complete(request_of("word " * 9000), call="1")
    assert caught.value.unbilled
    await model.aclose()


@pytest.mark.anyio
async def test_cancelled_call_stops_the_server(url: str, model: Model) -> None:
    async def call() -> None:
        await model.complete(request_of(STORY, 2500), call="1")

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(call)
            await wait_until(url, working=True)
            tasks.cancel_scope.cancel()
        await wait_until(url, working=False)
    await model.aclose()


@pytest.mark.anyio
async def test_journal_of_concurrent_calls_equals_server_counts(
    url: str, protocol: Protocol, tmp_path: Path
) -> None:
    model, before = make_model("expensive", protocol, url, tmp_path, permits=3), token_counts(url)

    async def run_turns(ctx: JobContext) -> Json:
        for turn in range(2):
            await model.complete(request_of(f"Say something of {ctx.key}.", 16), ctx=ctx, name=f"turn-{turn}")
        return "done"

    async with open_session(tmp_path / "run", BudgetLimits(usd=Decimal("0.05")), retries={}) as session:
        jobs = [closure_job(session, f"talk-{number}", run_turns, session.budget, "f") for number in range(6)]
        outcomes = await session.run(jobs)
        spent = session.budget.snapshot()
    await model.aclose()
    assert {outcome.status for outcome in outcomes.values()} == {Status.DONE}
    usages = [line["value"]["usage"] for line in read_journal(tmp_path / "run") if line["event"] == "settled"]
    assert len(usages) == 12
    total = {kind: sum(usage[kind] for usage in usages) for kind in usages[0]}
    after = token_counts(url)
    assert (total["input"], total["output"]) == (after[0] - before[0], after[1] - before[1])
    price = sum((total[kind] * Decimal(usd) for kind, usd in RATES["expensive"].items()), Decimal(0))
    assert (spent.settled.usd, spent.unknown.usd) == (price / 1_000_000, 0)


def test_run_with_real_models_ends_in_order(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(KEY_ENV, KEY)
    models = [
        MODEL % (name, name, url if name == "anthropic" else f"{url}/v1", KEY_ENV) for name in PROTOCOLS
    ]
    (tmp_path / "real.toml").write_text(RUN + "".join(models))
    # The server reads our own prompts for minutes.
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "discover_system.md").write_text("Call a tool.\n")
    (tmp_path / "prompts" / "discover_task.md").write_text("Find a rule.\n")
    command = [sys.executable, "-m", "codetaste.run", "real.toml", "--only", "*additive"]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True)
    output = done.stdout + done.stderr
    assert "Traceback" not in output
    assert KEY not in output
    lines = read_journal(tmp_path / "runs" / "real")
    states: dict[str, str] = {}
    for line in lines:
        if line["event"] in {"reserved", "settled", "released", "unknown"}:
            states[line["call"]] = line["event"]
    assert "settled" in states.values(), output
    assert not {*states.values()} - {"settled", "released", "unknown"}, output
    ended = {line["key"]: line for line in lines if line["event"] == "ended" and "/" in line["key"]}
    passes = [line for key, line in ended.items() if key.startswith("discover/")]
    assert {line["key"].split("/")[1] for line in passes} == {*PROTOCOLS}, output
    assert {line["value"]["finish_reason"] for line in passes} == {"max_turns"}, output
    status = subprocess.run(
        [sys.executable, "-m", "codetaste", "status", "runs/real", "--json"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    shown = json.loads(status.stdout)
    assert shown["owner"] is None
    assert Decimal(shown["money"]["reserved_usd"]) == 0
    calls = [model["calls"] for model in shown["models"].values()]
    assert sum(count for each in calls for count in each.values()) == len(states)
