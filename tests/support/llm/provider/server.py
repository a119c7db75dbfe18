"""A provider on the loopback that speaks three protocols, keeps its own bill, and fails when told to.

What is done with a request is an *act*: ``server.acts`` are for the next ones, ``server.default`` for the
others. The bill is the provider's own arithmetic, from tokens that it counted itself. Nothing here knows
codetaste.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import anyio
from anyio.abc import SocketAttribute, TaskStatus
from anyio.from_thread import start_blocking_portal

from support.llm.provider.exchange import Act, Billed, Exchange, Rates, Server
from support.llm.provider.http import Call, attend
from support.llm.provider.protocols import (
    PROTOCOLS,
    Protocol,
    Tell,
    error_of,
    events_of,
    protocol_of,
    whole_of,
)
from support.llm.provider.rate_limit import Gate
from support.llm.provider.validation import fault_in

__all__ = [
    "PROTOCOLS",
    "Act",
    "Billed",
    "Exchange",
    "Gate",
    "Protocol",
    "Rates",
    "Server",
    "counted",
    "cut",
    "events_of",
    "hang_up",
    "named",
    "reply",
    "reset",
    "say",
    "serving",
    "slowly",
    "stall",
    "status",
    "text",
]


def counted(body: dict[str, Any], blocks: list[dict[str, Any]], cap: int = 1 << 30) -> dict[str, int]:
    """A usage that no byte count is below: a token for every three bytes."""
    said = len(json.dumps(blocks))
    return {
        "input_tokens": len(json.dumps(body, ensure_ascii=False).encode()) // 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": min(body.get("max_tokens") or cap, cap, said // 3 + 1),
    }


def named(name: str, act: Act) -> Act:
    """Give an act the name that it is counted under."""
    act.__name__ = name  # type: ignore[attr-defined]
    return act


def reply(
    *blocks: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    tell: bool | Tell = True,
    chunked: bool = False,
) -> Act:
    """Answer with ``blocks``, streamed where asked; ``tell=False`` bills without saying what."""

    async def act(exchange: Exchange) -> None:
        await say(exchange, *blocks, stop=stop, usage=usage, tell=tell, chunked=chunked)

    return act


async def say(
    exchange: Exchange,
    *blocks: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    tell: bool | Tell = True,
    chunked: bool = False,
) -> None:
    """Do what ``reply`` says."""
    counts = usage if usage is not None else counted(exchange.body, list(blocks), exchange.cap)
    exchange.charge(counts)
    made = partial(
        events_of if exchange.streamed else whole_of,  # type: ignore[arg-type]
        exchange.body,
        list(blocks),
        stop,
        counts if tell else None,
        protocol=exchange.protocol,
        tell=tell if callable(tell) else None,
        name=exchange.name,
    )
    if exchange.streamed:
        await exchange.stream(made(), chunked=chunked)
    else:
        await exchange.respond(200, json.dumps(made()).encode(), "application/json", exchange.ids)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def status(code: int, body: object = None, *, content_type: str = "application/json", **headers: str) -> Act:
    """Refuse with an HTTP status; underscores in header names are dashes. Not billed."""

    async def act(exchange: Exchange) -> None:
        said = error_of(exchange.protocol, "x", "no") if body is None else body
        data = said.encode() if isinstance(said, str) else json.dumps(said).encode()
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        await exchange.respond(code, data, content_type, dashed)

    return act


def cut(*blocks: dict[str, Any], after: int = 4, chunked: bool = False, reset: bool = False) -> Act:
    """Begin a reply, bill it, and close or reset the connection after some events."""

    async def act(exchange: Exchange) -> None:
        usage = counted(exchange.body, list(blocks), exchange.cap)
        exchange.charge(usage)
        events = events_of(exchange.body, list(blocks), "end_turn", usage, protocol=exchange.protocol)
        await exchange.stream(events[:after], chunked=chunked, end=False)
        await (exchange.call.reset() if reset else exchange.call.hang_up())

    return act


def stall(*blocks: dict[str, Any], seconds: float = 30.0, after: int = 3) -> Act:
    """Begin a reply, bill it, and say no more."""

    async def act(exchange: Exchange) -> None:
        usage = counted(exchange.body, list(blocks), exchange.cap)
        exchange.charge(usage)
        events = events_of(exchange.body, list(blocks), "end_turn", usage, protocol=exchange.protocol)
        await exchange.stream(events[:after])
        await anyio.sleep(seconds)

    return act


async def hang_up(exchange: Exchange) -> None:
    """Take the request and close the connection without a word."""
    await exchange.call.hang_up()


async def reset(exchange: Exchange) -> None:
    """Take the request and break the connection."""
    await exchange.call.reset()


def slowly(act: Act, seconds: float) -> Act:
    async def slow(exchange: Exchange) -> None:
        await anyio.sleep(seconds)
        await act(exchange)

    return slow


async def _take(server: Server, call: Call) -> None:
    """Do what is to be done with one request."""
    try:
        body = json.loads(call.data)
        with server.lock:
            server.raw_bodies.append(call.data)
            server.bodies.append(body)
            server.headers.append(call.headers)
            server.ports.append(call.wire.extra(SocketAttribute.remote_port))
            number = len(server.bodies)
        exchange = Exchange(server, call, protocol_of(call.path), body, number)
        gate = server.gates.get(body["model"])
        if gate is None:
            await _act(exchange)
            return
        with gate.arrival(time.monotonic()) as refusal:
            if refusal is None:
                await _act(exchange)
            else:
                await exchange.refuse(429, "rate_limit_exceeded", refusal)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        server.faults.append(error)
        raise


async def _act(exchange: Exchange) -> None:
    server = exchange.server
    if server.strict and (fault := fault_in(exchange.protocol, exchange.body)):
        server.complaints.append(fault)
        await exchange.refuse(400, "invalid_request_error", {})
        return
    with server.lock:
        act = server.acts.popleft() if server.acts else server.default
    assert act is not None, "the test has nothing to answer with"
    exchange.act = getattr(act, "__name__", "act")
    with server.lock:
        server.acted[exchange.act] += 1
    await act(exchange)


async def _serve(server: Server, *, task_status: TaskStatus[str]) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=1024)
    task_status.started(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
    async with listener:
        await listener.serve(partial(attend, answer=partial(_take, server), idle_s=lambda: server.idle_s))


@contextmanager
def serving() -> Iterator[Server]:
    """Serve on a free port of the loopback, from a thread of its own."""
    server = Server("")
    with start_blocking_portal() as portal:
        task, server.url = portal.start_task(partial(_serve, server))
        try:
            yield server
        finally:
            task.cancel()
    assert not server.faults, server.faults
