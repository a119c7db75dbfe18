from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from codetaste.errors import (
    ConfigError,
    JournalError,
    ModelError,
    ModelSetupError,
    ModelUnavailable,
    RateLimited,
)
from codetaste.llm.build import build_model, check_ledgers
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Reply, Request, StopReason, TextBlock, ToolCall, Usage
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel, ScriptedReply

PRICE = Price(input=Decimal(3), output=Decimal(15))


def request_of(text: str, cap: int = 8192) -> Request:
    return Request("system", (Message("user", (TextBlock(text),)),), max_output_tokens=cap)


def scripted(folder: Path, script: Any) -> ScriptedModel:
    return ScriptedModel("m", script, price=PRICE, ledger=folder / "record" / "m.jsonl")


def bill(folder: Path) -> list[dict[str, Any]]:
    path = folder / "record" / "m.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


CALL = ToolCall("c1", "look", {"at": "é"})


async def later(_: Request) -> str:
    await anyio.lowlevel.checkpoint()
    return "later"


@pytest.mark.anyio
async def test_ledger_with_a_call_that_the_journal_lost_is_refused(tmp_path: Path) -> None:
    await scripted(tmp_path, lambda _: "hi").complete(request_of("x"), call="1")
    check_ledgers(tmp_path / "record", {"1", "2"})
    check_ledgers(tmp_path / "missing", ())
    with pytest.raises(JournalError, match=r"m\.jsonl has the call '1', which the journal has lost, so what"):
        check_ledgers(tmp_path / "record", {"2"})


@pytest.mark.anyio
@pytest.mark.parametrize("damaged", ['{"call":[]}', '{"call":"1"}', '{"call":"1","reply":{"message":[]}}'])
async def test_damaged_line_of_a_ledger_is_named(damaged: str, tmp_path: Path) -> None:
    await scripted(tmp_path, lambda _: "hi").complete(request_of("x"), call="0")
    with (tmp_path / "record" / "m.jsonl").open("a") as ledger:
        ledger.write(f"{damaged}\n")
    with pytest.raises(JournalError, match=r"m\.jsonl, line 2: a damaged line .*; restore the file$"):
        await scripted(tmp_path, lambda _: "hi").lookup("1")


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("scripted_reply", "content", "stop"),
    [
        ("hi", (TextBlock("hi"),), StopReason.END),
        ("", (), StopReason.END),
        (CALL, (CALL,), StopReason.TOOL_USE),
        ([TextBlock("now"), CALL], (TextBlock("now"), CALL), StopReason.TOOL_USE),
        (Message("assistant", (CALL,)), (CALL,), StopReason.TOOL_USE),
        (ScriptedReply("no", StopReason.REFUSAL), (TextBlock("no"),), StopReason.REFUSAL),
    ],
)
async def test_script_reply_can_be_written_in_several_forms(
    tmp_path: Path, scripted_reply: Any, content: tuple[Any, ...], stop: StopReason
) -> None:
    reply = await scripted(tmp_path, lambda _: scripted_reply).complete(request_of("x"), call="1")
    assert (reply.message.content, reply.stop) == (content, stop)
    assert reply.model.startswith("scripted:")


@pytest.mark.anyio
async def test_script_may_be_a_coroutine(tmp_path: Path) -> None:
    assert (await scripted(tmp_path, later).complete(request_of("x"), call="1")).message.text == "later"


@pytest.mark.anyio
async def test_scripted_call_is_billed_once_and_found_by_other_process(
    tmp_path: Path,
) -> None:
    model = scripted(tmp_path, lambda request: request.messages[0].text.upper())
    reply = await model.complete(request_of("hi"), call="job/turn-1#1")
    assert await model.complete(request_of("hi"), call="job/turn-1#1") == reply
    other = scripted(tmp_path, lambda _: pytest.fail("the script was called again"))
    assert await other.lookup("job/turn-1#1") == reply
    assert await other.complete(request_of("hi"), call="job/turn-1#1") == reply
    assert await other.lookup("job/turn-1#2") is None
    (line,) = bill(tmp_path)
    assert line["call"] == "job/turn-1#1"
    assert reply.usage is not None
    assert line["usage"]["output"] == reply.usage.output > 0
    assert Decimal(line["cost_usd"]) == PRICE.cost_usd(reply.usage)


@pytest.mark.anyio
async def test_ledger_incomplete_last_line_is_skipped(
    tmp_path: Path,
) -> None:
    await scripted(tmp_path, lambda _: "one").complete(request_of("x"), call="1")
    with (tmp_path / "record" / "m.jsonl").open("a") as ledger:
        ledger.write('{"call": "2", "repl')
    model = scripted(tmp_path, lambda _: "two")
    assert await model.lookup("2") is None
    await model.complete(request_of("x"), call="3")
    again = scripted(tmp_path, lambda _: "never")
    assert [(await again.lookup(call)) is not None for call in ("1", "2", "3")] == [True, False, True]


@pytest.mark.anyio
async def test_reply_over_cap_is_truncated_and_billed_at_cap(tmp_path: Path) -> None:
    long = scripted(tmp_path, lambda _: [TextBlock("é" * 5000), CALL])
    reply = await long.complete(request_of("x", cap=100), call="1")
    assert reply.stop is StopReason.LENGTH
    assert reply.usage is not None
    assert reply.usage.output <= 100
    assert 0 < len(reply.message.text) <= 400
    called = await scripted(tmp_path, lambda _: ToolCall("c", "w", {"text": "a" * 9000})).complete(
        request_of("x", cap=10), call="2"
    )
    assert called.message.tool_calls[0].fault == "the reply was cut off inside this call"


@pytest.mark.anyio
async def test_script_decides_whether_fault_is_billed(tmp_path: Path) -> None:
    def refuse(_: Request) -> str:
        raise RateLimited("slow down", retry_after_s=2.0)

    with pytest.raises(RateLimited):
        await scripted(tmp_path, refuse).complete(request_of("x"), call="1")
    assert bill(tmp_path) == []
    cut = scripted(tmp_path, lambda _: ScriptedReply("undelivered", fault=ModelUnavailable("cut")))
    with pytest.raises(ModelUnavailable):
        await cut.complete(request_of("x"), call="2")
    assert [line["call"] for line in bill(tmp_path)] == ["2"]
    found = await cut.lookup("2")
    assert found is not None
    assert found.message.text == "undelivered"


@pytest.mark.anyio
async def test_usage_may_be_given_or_withheld_and_is_billed(tmp_path: Path) -> None:
    given = Usage(input=7, output=5)
    reply = Reply(Message("assistant", (TextBlock("x"),)), StopReason.END, given, "m")
    assert (await scripted(tmp_path, lambda _: reply).complete(request_of("x"), call="1")).usage == given
    withheld = await scripted(tmp_path, lambda _: ScriptedReply("x", usage=None)).complete(
        request_of("x"), call="2"
    )
    assert withheld.usage is None
    assert [line["usage"]["output"] > 0 for line in bill(tmp_path)] == [True, True]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("script", "message"),
    [
        (lambda _: 1 / 0, r"the script failed: ZeroDivisionError: .*test_scripted\.py:\d+"),
        (lambda _: 42, "returned int, which is not a reply"),
        (lambda _: [TextBlock("x"), 3], "put int into a reply"),
    ],
)
async def test_failing_script_is_one_line_error_without_retry(
    tmp_path: Path, script: Any, message: str
) -> None:
    with pytest.raises(ModelSetupError, match=message) as caught:
        await scripted(tmp_path, script).complete(request_of("x"), call="1")
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ModelError)


@pytest.mark.anyio
async def test_config_names_function_in_file_or_package(tmp_path: Path) -> None:
    (tmp_path / "play.py").write_text("def reply(request):\n    return 'from ' + request.system\n")
    config = ModelConfig(id="m", provider="scripted", model="play.py:reply")
    model = build_model(config, base_dir=tmp_path, record_dir=tmp_path / "record")
    assert (await model.complete(request_of("x"), call="1")).message.text == "from system"
    await model.aclose()
    for path, problem in [
        ("play.py:nope", "has no 'nope'"),
        ("no.such:f", "no module named"),
        ("play.py:__name__", "not a function"),
    ]:
        bad = ModelConfig(id="m", provider="scripted", model=path)
        with pytest.raises(ConfigError, match=rf"models\[m\]\.model: .*{problem}"):
            build_model(bad, base_dir=tmp_path, record_dir=tmp_path)


@pytest.mark.anyio
async def test_system_exit_in_script_fails_only_its_call(tmp_path: Path) -> None:
    def leaves(_: Request) -> str:
        raise SystemExit(3)

    with pytest.raises(ModelSetupError, match="SystemExit: 3"):
        await scripted(tmp_path, leaves).complete(request_of("x"), call="1")
    assert bill(tmp_path) == []
