from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.core import files
from codetaste.errors import CassetteMiss, ConfigError, JournalError
from codetaste.llm.build import build_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import (
    Block,
    Message,
    ProviderBlocks,
    Reply,
    Request,
    StopReason,
    TextBlock,
    ToolCall,
    ToolResult,
    ToolSpec,
    Usage,
)
from codetaste.llm.price import Price
from codetaste.llm.providers.cassette import Cassette
from codetaste.llm.providers.replay import ReplayModel
from codetaste.llm.providers.scripted import ScriptedModel

PRICE = Price(input=Decimal(3), output=Decimal(15))


def user(*content: Block) -> Message:
    return Message("user", content)


def request_of(*messages: Message, **fields: Any) -> Request:
    return Request(**{"system": "Find rules.", "messages": messages, **fields})


class CountingModel:
    """A model whose every reply is new."""

    id = "inner"
    has_ledger = False

    def __init__(self) -> None:
        self.calls: list[str] = []

    async def complete(self, request: Request, *, call: str) -> Reply:  # noqa: ARG002 - the reply does not depend on it
        self.calls.append(call)
        number = len(self.calls)
        content = (TextBlock(f"reply {number} \ud800\x00"), ToolCall(f"toolu_{number}", "look", {"n": 2.0}))
        raw = ProviderBlocks("anthropic", ({"type": "thinking", "signature": f"s{number}"},))
        usage = Usage(input=10, output=5, reasoning=2)
        return Reply(Message("assistant", content, raw), StopReason.TOOL_USE, usage, "real", f"req_{number}")

    async def lookup(self, call: str) -> Reply | None:  # noqa: ARG002 - it has no record
        return None

    async def aclose(self) -> None:
        self.calls.append("closed")


def replay_model(folder: Path, inner: Any = None, mode: Any = "replay", run: str = "run") -> ReplayModel:
    served = folder / run / "served.jsonl"
    return ReplayModel("m", "real", Cassette(folder / "tape.jsonl"), inner=inner, mode=mode, ledger=served)


async def run_conversation(model: Any, turns: int, *, prefix: str = "c") -> list[Reply]:
    """Run a conversation in which every turn answers the previous tool call."""
    messages: list[Message] = [user(TextBlock("begin"))]
    replies: list[Reply] = []
    for turn in range(turns):
        reply = await model.complete(request_of(*messages), call=f"{prefix}{turn}")
        replies.append(reply)
        result = ToolResult(reply.message.tool_calls[0].id, f"result {turn}")
        messages += [reply.message, user(result)]
    return replies


@pytest.mark.anyio
async def test_recorded_conversation_is_replayed_exactly_without_model(tmp_path: Path) -> None:
    recorded = await run_conversation(replay_model(tmp_path, CountingModel(), "record", "first"), 5)
    assert await run_conversation(replay_model(tmp_path, run="second"), 5, prefix="d") == recorded


@pytest.mark.anyio
async def test_cassette_stores_each_message_once(tmp_path: Path) -> None:
    model = replay_model(tmp_path, CountingModel(), "record")
    await model.complete(request_of(user(TextBlock("long " * 10_000))), call="1")
    size = (tmp_path / "tape.jsonl").stat().st_size
    await model.complete(request_of(user(TextBlock("long " * 10_000)), user(TextBlock("more"))), call="2")
    assert (tmp_path / "tape.jsonl").stat().st_size < size + 2500


@pytest.mark.anyio
async def test_identical_requests_are_replayed_in_recorded_order(tmp_path: Path) -> None:
    model = replay_model(tmp_path, CountingModel(), "record", "first")
    same = request_of(user(TextBlock("again")))
    recorded = [await model.complete(same, call=f"{n}") for n in range(3)]
    later = replay_model(tmp_path, run="second")
    assert [await later.complete(same, call=f"x{n}") for n in range(3)] == recorded
    with pytest.raises(CassetteMiss, match="recorded 3 times and was made once more"):
        await later.complete(same, call="x3")


@pytest.mark.anyio
async def test_replay_key_ignores_call_ids_raw_blocks_and_cap(tmp_path: Path) -> None:
    def conversation(call_id: str, raw: ProviderBlocks | None, cap: int) -> Request:
        call = Message("assistant", (ToolCall(call_id, "look", {}),), raw)
        return request_of(
            user(TextBlock("x")), call, user(ToolResult(call_id, "seen")), max_output_tokens=cap
        )

    model = replay_model(tmp_path, CountingModel(), "record", "first")
    reply = await model.complete(
        conversation("toolu_a", ProviderBlocks("anthropic", ({"a": 1},)), 8192), call="1"
    )
    later = replay_model(tmp_path, run="second")
    assert await later.complete(conversation("call-77", None, 4096), call="9") == reply
    with pytest.raises(CassetteMiss, match="5 output tokens, and the budget has room for 4"):
        await replay_model(tmp_path, run="third").complete(conversation("x", None, 4), call="9")


BEGIN = user(TextBlock("begin"))
LONG = "a" * 5000


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (
            request_of(BEGIN, user(TextBlock(LONG + "Y" + LONG))),
            r"message 2 \(user\) differs: at character 50\d\d.*X.*Y",
        ),
        (
            request_of(BEGIN, user(TextBlock(LONG + "X" + LONG)), BEGIN),
            r"message 3 \(user\) comes after the end",
        ),
        (request_of(BEGIN), r"continues with message 2 \(user\)"),
        (
            request_of(BEGIN, user(TextBlock(LONG + "X" + LONG)), system="Other."),
            r"system differs.*Find.*Other",
        ),
        (request_of(BEGIN, user(TextBlock("X")), options={"temperature": 1}), "options differs"),
        (request_of(BEGIN, tools=(ToolSpec("t", "d", {}),)), "tools differs"),
    ],
)
async def test_replay_miss_names_first_difference_from_nearest_recording(
    tmp_path: Path, changed: Request, message: str
) -> None:
    model = replay_model(tmp_path, CountingModel(), "record", "first")
    await model.complete(request_of(user(TextBlock("something else entirely"))), call="0")
    await model.complete(request_of(BEGIN, user(TextBlock(LONG + "X" + LONG))), call="1")
    with pytest.raises(CassetteMiss, match=message) as caught:
        await replay_model(tmp_path, run="second").complete(changed, call="2")
    text = str(caught.value)
    assert len(text) < 600
    assert "\n" not in text
    assert 'mode = "record-missing"' in text


@pytest.mark.anyio
async def test_record_missing_calls_model_only_for_missing_replies(tmp_path: Path) -> None:
    recorded = await run_conversation(replay_model(tmp_path, CountingModel(), "record", "first"), 2)
    inner = CountingModel()
    model = replay_model(tmp_path, inner, "record-missing", "second")
    longer = await run_conversation(model, 4)
    assert longer[:2] == recorded
    assert len(inner.calls) == 2
    assert await run_conversation(replay_model(tmp_path, run="third"), 4) == longer
    await model.aclose()
    assert inner.calls[-1] == "closed"


@pytest.mark.anyio
async def test_replay_killed_run_continues_and_looks_up_replies(
    tmp_path: Path,
) -> None:
    recorder = replay_model(tmp_path, CountingModel(), "record", "first")
    same = request_of(user(TextBlock("again")))
    recorded = [await recorder.complete(same, call=f"{n}") for n in range(3)]
    assert await replay_model(tmp_path, run="second").complete(same, call="a") == recorded[0]
    resumed = replay_model(tmp_path, run="second")
    assert await resumed.lookup("a") == recorded[0]
    assert await resumed.lookup("b") is None
    assert await resumed.complete(same, call="a") == recorded[0]
    assert await resumed.complete(same, call="b") == recorded[1]


@pytest.mark.anyio
async def test_new_recording_replaces_old_one(tmp_path: Path) -> None:
    await run_conversation(replay_model(tmp_path, CountingModel(), "record", "first"), 1)
    inner = CountingModel()
    inner.calls = ["x", "y"]
    newer = await run_conversation(replay_model(tmp_path, inner, "record", "second"), 1)
    assert newer[0].message.text.startswith("reply 3")
    assert await run_conversation(replay_model(tmp_path, run="third"), 1) == newer


@pytest.mark.anyio
@pytest.mark.parametrize("file", ["cassette.jsonl", "ledger.jsonl"])
@pytest.mark.parametrize(
    "line",
    [
        '{"key":[],"nth":0,"parts":[],"reply":{},"call":"c"}',
        '{"key":"k","nth":{},"parts":7,"reply":{},"call":[]}',
        '{"part":{},"body":1,"call":"c","key":"k","nth":"0"}',
    ],
)
async def test_damaged_line_is_named(file: str, line: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(f"\n{line}\n")
    cassette = Cassette(tmp_path / "cassette.jsonl")
    model = ReplayModel("m", "real", cassette, inner=None, mode="replay", ledger=tmp_path / "ledger.jsonl")
    with pytest.raises(JournalError, match=rf"{file}, line 2: a damaged line \(.*\); restore the file"):
        await model.lookup("call")


@pytest.mark.anyio
async def test_incomplete_last_line_is_skipped(tmp_path: Path) -> None:
    recorded = await run_conversation(replay_model(tmp_path, CountingModel(), "record", "first"), 3)
    tape = tmp_path / "tape.jsonl"
    tape.write_bytes(tape.read_bytes()[:-20])
    later = replay_model(tmp_path, CountingModel(), "record-missing", "second")
    assert (await run_conversation(later, 3))[:2] == recorded[:2]
    assert len(await run_conversation(replay_model(tmp_path, run="third"), 3)) == 3


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ('{"part":[],"body":1}', "unhashable"),
        ('{"key":"k","nth":0,"parts":[1],"reply":{}}', "'message'"),
        ('{"key":"k","nth":0,"parts":[],"reply":null}', "TypeError"),
        ("x" * 200_000, "100,000"),
    ],
)
async def test_damaged_cassette_or_ledger_is_named_with_its_line_and_costs_nothing(
    line: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 100_000)
    await run_conversation(replay_model(tmp_path, CountingModel(), "record"), 1)
    tape = tmp_path / "tape.jsonl"
    whole = tape.read_text()
    tape.write_text(f"{whole}{line}\n")
    message = rf"tape\.jsonl.* line {whole.count(chr(10)) + 1}.*{reason}"
    with pytest.raises(CassetteMiss, match=message) as raised:
        await run_conversation(replay_model(tmp_path), 1)
    assert raised.value.unbilled
    config = ModelConfig(id="m", provider="replay", model="x", cassette=tape)
    with pytest.raises(ConfigError, match=rf"^models\[m\]\.cassette: .*{message}"):
        build_model(config, base_dir=tmp_path, record_dir=tmp_path)
    tape.write_text(whole)
    (tmp_path / "run" / "served.jsonl").write_text('{"call":"c","key":"k","nth":"0"}\n')
    with pytest.raises(CassetteMiss, match=r"served\.jsonl, line 1: a damaged line"):
        await run_conversation(replay_model(tmp_path), 1)


def test_cassette_without_reply_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "tape.jsonl").write_text("not a recording\n")
    config = ModelConfig(id="m", provider="replay", model="x", cassette=tmp_path / "tape.jsonl")
    with pytest.raises(ConfigError, match=r"^models\[m\]\.cassette: .*holds no recorded reply"):
        build_model(config, base_dir=tmp_path, record_dir=tmp_path)


@pytest.mark.anyio
async def test_concurrent_conversations_of_two_recorders_share_a_cassette(tmp_path: Path) -> None:
    models = [replay_model(tmp_path, CountingModel(), "record", f"run-{n}") for n in range(2)]

    async def record(number: int) -> None:
        request = request_of(user(TextBlock(f"conversation {number}" * 500)))
        await models[number % 2].complete(request, call=f"{number}")

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(record, number)
    later = replay_model(tmp_path, run="later")
    for number in range(40):
        await later.complete(request_of(user(TextBlock(f"conversation {number}" * 500))), call=f"{number}")
    assert all(json.loads(line) for line in (tmp_path / "tape.jsonl").read_text().splitlines())


@pytest.mark.anyio
async def test_config_replays_without_key_and_records_any_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "play.py").write_text("def reply(request):\n    return 'recorded'\n")
    fields: dict[str, Any] = {"id": "m", "model": "play.py:reply", "cassette": Path("tapes")}
    config = ModelConfig(provider="scripted", mode="record", **fields)
    model = build_model(config, base_dir=tmp_path, record_dir=tmp_path / "one")
    await model.complete(request_of(user(TextBlock("x"))), call="1")
    assert (tmp_path / "tapes" / "m.jsonl").is_file()
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    providers: Sequence[Any] = ("replay", "anthropic")
    for provider in providers:
        alone = ModelConfig(provider=provider, **fields)
        assert alone.key_env is None
        again = build_model(alone, base_dir=tmp_path, record_dir=tmp_path / provider)
        assert (await again.complete(request_of(user(TextBlock("x"))), call="1")).message.text == "recorded"
    missing = ModelConfig(id="n", provider="replay", model="x", cassette=Path("tapes"))
    with pytest.raises(ConfigError, match=r"no cassette .*n\.jsonl"):
        build_model(missing, base_dir=tmp_path, record_dir=tmp_path)


@pytest.mark.anyio
async def test_unsettled_recorded_call_is_looked_up_in_own_record(
    tmp_path: Path,
) -> None:
    inner = ScriptedModel("m", lambda _: "billed", price=PRICE, ledger=tmp_path / "ledger.jsonl")
    await inner.complete(request_of(BEGIN), call="unsettled")
    found = await replay_model(tmp_path, inner, "record").lookup("unsettled")
    assert found is not None
    assert found.message.text == "billed"
