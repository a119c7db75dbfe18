"""A provider on the loopback with three protocols, its own bill, and faults on request.

A *handler* answers a request: ``server.handlers`` the next ones, ``server.default`` all others. The bill is
computed independently, from tokens that the provider counts itself. Nothing here imports codetaste.
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

from support.llm.provider.exchange import Billed, Exchange, Handler, Rates, Server
from support.llm.provider.http import Call, serve_connection
from support.llm.provider.protocols import (
    PROTOCOLS,
    PROTOCOLS_OTHERS_HEAVY,
    Protocol,
    UsageReport,
    error_of,
    events_of,
    protocol_of,
    whole_of,
)
from support.llm.provider.rate_limit import Gate
from support.llm.provider.validation import fault_in

__all__ = [
    "PROTOCOLS",
    "PROTOCOLS_OTHERS_HEAVY",
    "Billed",
    "Exchange",
    "Gate",
    "Handler",
    "Protocol",
    "Rates",
    "Server",
    "count_usage",
    "cut",
    "delayed",
    "events_of",
    "hang_up",
    "reply",
    "reset",
    "send_reply",
    "serving",
    "stall",
    "status",
    "text",
]


def count_usage(body: dict[str, Any], blocks: list[dict[str, Any]], cap: int = 1 << 30) -> dict[str, int]:
    """Count a usage: one token for every three bytes."""
    reply_size = len(json.dumps(blocks))
    return {
        "input_tokens": len(json.dumps(body, ensure_ascii=False).encode()) // 3,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": min(body.get("max_tokens") or cap, cap, reply_size // 3 + 1),
    }


def reply(
    *blocks: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    report_usage: bool | UsageReport = True,
    chunked: bool = False,
) -> Handler:
    """Answer with ``blocks``, streamed if requested; ``report_usage=False`` bills without reporting usage."""

    async def handle(exchange: Exchange) -> None:
        await send_reply(
            exchange, *blocks, stop=stop, usage=usage, report_usage=report_usage, chunked=chunked
        )

    return handle


async def send_reply(
    exchange: Exchange,
    *blocks: dict[str, Any],
    stop: str = "end_turn",
    usage: dict[str, Any] | None = None,
    report_usage: bool | UsageReport = True,
    chunked: bool = False,
) -> None:
    """Send the reply that ``reply`` describes."""
    counts = usage if usage is not None else count_usage(exchange.body, list(blocks), exchange.cap)
    exchange.charge(counts)
    build = partial(
        events_of if exchange.streamed else whole_of,  # type: ignore[arg-type]
        exchange.body,
        list(blocks),
        stop,
        counts if report_usage else None,
        protocol=exchange.protocol,
        report=report_usage if callable(report_usage) else None,
        name=exchange.name,
    )
    if exchange.streamed:
        await exchange.stream(build(), chunked=chunked)
    else:
        await exchange.respond(200, json.dumps(build()).encode(), "application/json", exchange.ids)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def status(
    code: int, body: object = None, *, content_type: str = "application/json", **headers: str
) -> Handler:
    """Answer with an HTTP status, unbilled; underscores in header names become dashes."""

    async def handle(exchange: Exchange) -> None:
        content = error_of(exchange.protocol, "x", "no") if body is None else body
        data = content.encode() if isinstance(content, str) else json.dumps(content).encode()
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        await exchange.respond(code, data, content_type, dashed)

    return handle


def cut(*blocks: dict[str, Any], after: int = 4, chunked: bool = False, reset: bool = False) -> Handler:
    """Begin a reply, bill it, and close or reset the connection after some events."""

    async def handle(exchange: Exchange) -> None:
        usage = count_usage(exchange.body, list(blocks), exchange.cap)
        exchange.charge(usage)
        events = events_of(exchange.body, list(blocks), "end_turn", usage, protocol=exchange.protocol)
        await exchange.stream(events[:after], chunked=chunked, end=False)
        await (exchange.call.reset() if reset else exchange.call.hang_up())

    return handle


def stall(*blocks: dict[str, Any], seconds: float = 30.0, after: int = 3) -> Handler:
    """Begin a reply, bill it, and send nothing more."""

    async def handle(exchange: Exchange) -> None:
        usage = count_usage(exchange.body, list(blocks), exchange.cap)
        exchange.charge(usage)
        events = events_of(exchange.body, list(blocks), "end_turn", usage, protocol=exchange.protocol)
        await exchange.stream(events[:after])
        await anyio.sleep(seconds)

    return handle


async def hang_up(exchange: Exchange) -> None:
    """Read the request and close the connection without an answer."""
    await exchange.call.hang_up()


async def reset(exchange: Exchange) -> None:
    """Read the request and reset the connection."""
    await exchange.call.reset()


def delayed(handler: Handler, seconds: float) -> Handler:
    async def handle(exchange: Exchange) -> None:
        await anyio.sleep(seconds)
        await handler(exchange)

    return handle


async def _handle_call(server: Server, call: Call) -> None:
    """Answer one request, within the model's rate limit."""
    try:
        body = json.loads(call.data)
        with server.lock:
            server.raw_bodies.append(call.data)
            server.bodies.append(body)
            server.headers.append(call.headers)
            server.paths.append(call.path)
            server.ports.append(call.stream.extra(SocketAttribute.remote_port))
            number = len(server.bodies)
        exchange = Exchange(server, call, protocol_of(call.path), body, number)
        gate = server.gates.get(body["model"])
        if gate is None:
            await _answer(exchange)
            return
        with gate.arrival(time.monotonic()) as refusal:
            if refusal is None:
                await _answer(exchange)
            else:
                await exchange.refuse(429, "rate_limit_exceeded", refusal)
    except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
        server.faults.append(error)
        raise


async def _answer(exchange: Exchange) -> None:
    server = exchange.server
    if server.strict and (fault := fault_in(exchange.protocol, exchange.body)):
        server.complaints.append(fault)
        await exchange.refuse(400, "invalid_request_error", {})
        return
    with server.lock:
        handler = server.handlers.popleft() if server.handlers else server.default
    assert handler is not None, "the test has no handler for this request"
    exchange.handler = getattr(handler, "__name__", "handler")
    with server.lock:
        server.handled[exchange.handler] += 1
    await handler(exchange)


async def _serve(server: Server, *, task_status: TaskStatus[str]) -> None:
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", backlog=1024)
    task_status.started(f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}")
    async with listener:
        await listener.serve(
            partial(serve_connection, handle=partial(_handle_call, server), idle_s=lambda: server.idle_s)
        )


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
