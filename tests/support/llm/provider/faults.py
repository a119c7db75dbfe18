"""The faults of a provider, one handler for each."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random
from typing import Any

import anyio

from support.llm.provider.exchange import Exchange
from support.llm.provider.protocols import error_event_of, events_of
from support.llm.provider.server import count_usage, send_reply, text

Fault = Callable[[Exchange, Random], Any]

HTML = b"<html><head><title>502</title></head><body>" + b"<p>Bad gateway</p>" * 500 + b"</body></html>"
ABSURD = (-5, 5.5, "NaN", float("nan"), None, True, [], {"a": 1}, "many", 0)
STALL_S = 30.0
"""How long a stall lasts: longer than the time limit of any client in these tests."""


def blocks_of(rng: Random, cap: int = 0) -> list[dict[str, Any]]:
    """Return thoughts, text and tool calls at random; sometimes as much as ``cap`` tokens allow."""
    thought = {"type": "thinking", "thinking": "hm … " * rng.randrange(1, 30), "signature": "c2ln" * 10}
    calls = [_call(f"call_{rng.getrandbits(40):x}") for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    length = min(cap, 4000) // 7 if rng.random() < 0.04 else rng.randrange(9)
    words = [text("I look at ït. " * length)] if length else []
    return [*([thought] if rng.random() < 0.5 else []), *words, *calls]


def _call(call_id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "look", "input": {"at": "hére"}, **more}


def counts_of(exchange: Exchange, blocks: list[dict[str, Any]], rng: Random) -> dict[str, int]:
    """Count a reply; a part of its prompt is read from a cache and a part written to it."""
    counts = count_usage(exchange.body, blocks, exchange.cap)
    read = rng.randrange(counts["input_tokens"] + 1)
    written = rng.randrange(counts["input_tokens"] - read + 1)
    counts["input_tokens"] -= read + written
    counts |= {"cache_read_input_tokens": read, "cache_creation_input_tokens": written}
    # Reasoning is billed and not shown: a reply may cost up to its cap.
    if rng.random() < 0.1:
        counts["output_tokens"] = exchange.cap
    counts["reasoning_tokens"] = rng.randrange(counts["output_tokens"] + 1)
    return counts


async def good(exchange: Exchange, rng: Random, **more: Any) -> None:
    blocks = more.pop("blocks", None) or blocks_of(rng, exchange.cap)
    usage = counts_of(exchange, blocks, rng)
    await send_reply(exchange, *blocks, stop="tool_use", usage=usage, **{"chunked": True, **more})


async def _send_beginning(exchange: Exchange, rng: Random, *more: Any) -> None:
    """Bill a reply and send its beginning, then ``more``."""
    blocks = blocks_of(rng, exchange.cap)
    usage = counts_of(exchange, blocks, rng)
    exchange.charge(usage)
    events = events_of(exchange.body, blocks, "tool_use", usage, protocol=exchange.protocol)
    sent = events[: rng.randrange(1, len(events) - 1)]
    await exchange.stream([*sent, *more], chunked=rng.random() < 0.5, end=bool(more))


def _maybe_billed(exchange: Exchange, rng: Random) -> None:
    if rng.random() < 0.5:
        blocks = blocks_of(rng, exchange.cap)
        exchange.charge(counts_of(exchange, blocks, rng))


def refusing(
    status: int, kind: str, headers: Callable[[], dict[str, str]] = dict, *, billed: bool | None = None
) -> Fault:
    """Refuse with the protocol's error; with the status of a proxy it may be billed nevertheless."""
    may_be_billed = status in {502, 504} if billed is None else billed

    async def fault(exchange: Exchange, rng: Random) -> None:
        if may_be_billed:
            _maybe_billed(exchange, rng)
        await exchange.refuse(status, kind, headers())

    return fault


def retry_in_a_second() -> dict[str, str]:
    return {"retry-after": format_datetime(datetime.now(UTC) + timedelta(seconds=1), usegmt=True)}


def html(status: int) -> Fault:
    async def fault(exchange: Exchange, rng: Random) -> None:
        _maybe_billed(exchange, rng)
        await exchange.respond(status, HTML, "text/html; charset=utf-8", {})

    return fault


async def reset_first(exchange: Exchange, rng: Random) -> None:
    _maybe_billed(exchange, rng)
    await exchange.call.reset()


async def hang_up_first(exchange: Exchange, rng: Random) -> None:
    _maybe_billed(exchange, rng)
    await exchange.call.hang_up()


async def reset_in_stream(exchange: Exchange, rng: Random) -> None:
    await _send_beginning(exchange, rng)
    await exchange.call.reset()


async def cut_in_stream(exchange: Exchange, rng: Random) -> None:
    await _send_beginning(exchange, rng)
    await exchange.call.hang_up()


async def stall(exchange: Exchange, rng: Random) -> None:
    await _send_beginning(exchange, rng)
    await anyio.sleep(STALL_S)


async def silent(exchange: Exchange, rng: Random) -> None:
    """Bill at random, and send nothing until after the client's time limit."""
    _maybe_billed(exchange, rng)
    await anyio.sleep(STALL_S)


async def error_in_stream(exchange: Exchange, rng: Random) -> None:
    kinds = ("overloaded_error", "api_error", "rate_limit_error", "rate_limit_exceeded", "server_error")
    await _send_beginning(
        exchange, rng, error_event_of(exchange.protocol, rng.choice(kinds), "in the middle")
    )


async def error_at_once(exchange: Exchange, rng: Random) -> None:
    kind = {"anthropic": "overloaded_error"}.get(exchange.protocol, "server_error")
    await exchange.stream([error_event_of(exchange.protocol, kind, "at once")], chunked=True)


async def garbage_in_stream(exchange: Exchange, rng: Random) -> None:
    await _send_beginning(exchange, rng, '{"type": "content_block_de')


async def invalid_utf8(exchange: Exchange, rng: Random) -> None:
    blocks = [text("broken \ue000 text")]
    usage = counts_of(exchange, blocks, rng)
    exchange.charge(usage)
    events = events_of(exchange.body, blocks, "end_turn", usage, protocol=exchange.protocol)

    def broken(data: bytes) -> bytes:
        return data.replace(b"\\ue000", b"\xff\xfe\xc3")

    await exchange.stream(events, chunked=True, encode=broken)


async def no_usage(exchange: Exchange, rng: Random) -> None:
    await good(exchange, rng, report_usage=False)


async def absurd_usage(exchange: Exchange, rng: Random) -> None:
    value = rng.choice(ABSURD)

    def absurd(usage: dict[str, Any]) -> dict[str, Any]:
        return {name: value if isinstance(count, int) else count for name, count in usage.items()}

    await good(exchange, rng, report_usage=absurd)


async def half_absurd_usage(exchange: Exchange, rng: Random) -> None:
    """Report an absurd value on one side of the usage, and the truth on the other."""
    value = rng.choice((-5, 5.5, "NaN", float("nan"), "many"))
    side = rng.choice((("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")))
    await good(
        exchange, rng, report_usage=lambda usage: usage | {name: value for name in side if name in usage}
    )


async def huge_usage(exchange: Exchange, rng: Random) -> None:
    """Report far more tokens than any call can have."""
    value = rng.choice((10**12, 10**400))
    side = rng.choice((("input_tokens", "prompt_tokens"), ("output_tokens", "completion_tokens")))
    await good(
        exchange, rng, report_usage=lambda usage: usage | {name: value for name in side if name in usage}
    )


async def odd_usage(exchange: Exchange, rng: Random) -> None:
    """Report a usage that is no object."""
    value = rng.choice(["free", [], 0, False])
    await good(exchange, rng, report_usage=lambda _: value)


async def closes_when_idle(exchange: Exchange, rng: Random) -> None:
    await good(exchange, rng)
    await exchange.call.hang_up()


async def trickled(exchange: Exchange, rng: Random) -> None:
    exchange.call.piece = lambda: 1
    await good(exchange, rng, blocks=[text("x"), _call("call_1")])


async def shattered(exchange: Exchange, rng: Random) -> None:
    exchange.call.piece = lambda: rng.choice((1, 2, 3, 50, 500))
    await good(exchange, rng)


async def zipped(exchange: Exchange, rng: Random) -> None:
    if "gzip" not in exchange.call.headers.get("accept-encoding", ""):
        await good(exchange, rng)
        return
    blocks = blocks_of(rng, exchange.cap)
    usage = counts_of(exchange, blocks, rng)
    exchange.charge(usage)
    events = events_of(
        exchange.body, blocks, "tool_use", usage, protocol=exchange.protocol, name=exchange.name
    )
    headers = {"content-encoding": "gzip"}
    await exchange.stream(events, chunked=True, encode=gzip.compress, headers=headers)


async def unstreamed(exchange: Exchange, rng: Random) -> None:
    """Answer in one piece although a stream was requested."""
    exchange.body["stream"] = False
    await good(exchange, rng)


async def repeated_ids(exchange: Exchange, rng: Random) -> None:
    await good(exchange, rng, blocks=[_call("call_1"), text("and"), _call("call_1"), _call("")])


async def bad_arguments(exchange: Exchange, rng: Random) -> None:
    bad = rng.choice(('{"at": "he', "[1]", "NaN", '{"n": ' + "[" * 150 + "]" * 150 + "}", "null", '"{}"'))
    await good(exchange, rng, blocks=[text("x"), _call("call_1", partial=bad)])


async def slow(exchange: Exchange, rng: Random) -> None:
    await anyio.sleep(rng.uniform(0, 0.05))
    await good(exchange, rng)


async def billed_and_late(exchange: Exchange, rng: Random) -> None:
    """Bill at once and answer later: a client that disconnects meanwhile does not know the cost."""
    blocks = blocks_of(rng, exchange.cap)
    usage = counts_of(exchange, blocks, rng)
    exchange.charge(usage)
    await anyio.sleep(0.5)
    events = events_of(
        exchange.body, blocks, "tool_use", usage, protocol=exchange.protocol, name=exchange.name
    )
    await exchange.stream(events, chunked=True)
