"""A GitHub on the loopback: GraphQL and REST with rate limits, ETags, redirections, and faults on request.

``hub.faults`` are what the next requests get instead of an answer. Time is the test's: the clock advances by
what the client waits for, so no test sleeps. ``hub.impolite`` has the requests that came although a limit
had told the client to wait. Nothing here imports codetaste.
"""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import anyio
from anyio.abc import SocketAttribute

from support.llm.provider.http import Call, serve_connection
from support.mining.github import graphql_api, rest_api
from support.mining.github.world import World

TOKEN = "github_not_a_token_at_all"
SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
Fault = Callable[["Hub", Call], Awaitable[None]]


@dataclass
class Clock:
    """A time of day that passes when the client waits."""

    time_s: float = 1_764_000_000.0
    sleeps: list[float] = field(default_factory=list)

    def now(self) -> float:
        return self.time_s

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.sleeps.append(seconds)
        self.time_s += seconds
        await anyio.lowlevel.checkpoint()


@dataclass
class PrimaryLimit:
    """Points or requests an hour."""

    limit: int
    reset_at: float
    used: int = 0


@dataclass
class Hub:
    """The server and what it saw.

    Attributes:
        world: its repositories.
        clock: the time of day.
        url: its address.
        tokens: valid tokens.
        faults: for the next requests, in order.
        heavy: a GraphQL query of more lookups is ended by the server as too slow.
        too_slow: so is one for the pull request of this number.
        cut: how many were.
        per_minute: requests that the secondary limit allows; None is no limit.
        requests: method and path of each request.
        headers: of each request.
        bodies: of each GraphQL request.
        impolite: requests that came while the client was to wait.
        most_at_once: requests under way at the same time.
    """

    world: World
    clock: Clock
    url: str = ""
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    faults: deque[Fault] = field(default_factory=deque)
    heavy: int = 1000
    too_slow: int = 0
    cut: int = 0
    per_minute: int | None = None
    requests: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    impolite: list[str] = field(default_factory=list)
    most_at_once: int = 0
    limits: dict[str, PrimaryLimit] = field(default_factory=dict)
    wait_until: float = 0.0
    recent: list[float] = field(default_factory=list)
    at_once: int = 0
    errors: list[Exception] = field(default_factory=list)

    def limit(self, resource: str, *, known: bool = True) -> PrimaryLimit:
        """Return the primary limit of a resource, renewed every hour."""
        now = self.clock.now()
        found = self.limits.setdefault(resource, PrimaryLimit(5000 if known else 60, now + 3600))
        if now >= found.reset_at:
            found.used, found.reset_at = 0, now + 3600
        return found

    async def respond(self, call: Call, status: int, data: Any, **headers: str) -> None:
        """Send JSON, compressed as GitHub does."""
        body = gzip.compress(json.dumps(data).encode(), 1)
        dashed = {name.replace("_", "-"): value for name, value in headers.items()}
        kind = {"content-type": "application/json; charset=utf-8", "content-encoding": "gzip"}
        await call.respond(status, body, {**kind, **dashed})


def limit_headers(limit: PrimaryLimit, resource: str) -> dict[str, str]:
    return {
        "x_ratelimit_limit": str(limit.limit),
        "x_ratelimit_remaining": str(max(0, limit.limit - limit.used)),
        "x_ratelimit_used": str(limit.used),
        "x_ratelimit_reset": str(int(limit.reset_at)),
        "x_ratelimit_resource": resource,
    }


async def handle(hub: Hub, call: Call) -> None:
    """Answer one request."""
    hub.at_once += 1
    hub.most_at_once = max(hub.most_at_once, hub.at_once)
    try:
        await _handle(hub, call)
    except (AssertionError, LookupError, TypeError, ValueError, AttributeError) as error:
        hub.errors.append(error)
        raise
    finally:
        hub.at_once -= 1


async def _handle(hub: Hub, call: Call) -> None:
    request = f"{call.method} {call.path}"
    hub.requests.append(request)
    hub.headers.append(call.headers)
    now = hub.clock.now()
    if now < hub.wait_until:
        hub.impolite.append(request)
    if hub.faults:
        await hub.faults.popleft()(hub, call)
        return
    if not call.headers.get("user-agent"):
        await hub.respond(call, 403, {"message": "Request forbidden by administrative rules."})
        return
    token = call.headers.get("authorization", "").removeprefix("Bearer ")
    if (token and token not in hub.tokens) or (not token and call.path == "/graphql"):
        await hub.respond(call, 401, {"message": "Bad credentials", "status": "401"})
        return
    if hub.per_minute is not None:
        hub.recent = [at for at in hub.recent if at > now - 60]
        if len(hub.recent) >= hub.per_minute:
            await secondary_limit(retry_after=30)(hub, call)
            return
        hub.recent.append(now)
    if call.path == "/graphql":
        await graphql(hub, call)
    else:
        await _rest(hub, call, known=bool(token))


async def graphql(hub: Hub, call: Call) -> None:
    """Answer a GraphQL query."""
    body = json.loads(call.data)
    hub.bodies.append(body)
    limit = hub.limit("graphql")
    cost = graphql_api.points(body["query"], body["variables"])
    if limit.used + cost > limit.limit:
        if limit.used >= limit.limit:
            hub.impolite.append("graphql beyond the primary limit")
        limit.used = limit.limit
        error = {"type": "RATE_LIMITED", "message": "API rate limit exceeded for user ID 1."}
        await hub.respond(call, 200, {"errors": [error]}, **limit_headers(limit, "graphql"))
        return
    limit.used += cost
    values = body["variables"]
    if sum(name.startswith("o") for name in values) > hub.heavy or hub.too_slow in values.values():
        hub.cut += 1
        await bad_gateway(hub, call)
        return
    shown = {
        "cost": cost,
        "limit": limit.limit,
        "remaining": limit.limit - limit.used,
        "resetAt": datetime.fromtimestamp(int(limit.reset_at), UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    reply = graphql_api.run_query(hub.world, body, shown)
    await hub.respond(call, 200, reply, **limit_headers(limit, "graphql"))


async def _rest(hub: Hub, call: Call, *, known: bool) -> None:
    limit = hub.limit("core", known=known)
    if limit.used >= limit.limit:
        hub.impolite.append("REST beyond the primary limit")
        message = "API rate limit exceeded for 127.0.0.1."
        await hub.respond(call, 403, {"message": message}, **limit_headers(limit, "core"))
        return
    status, data = rest_api.answer(hub.world, call.path)
    etag = f'W/"{hashlib.sha256(json.dumps(data).encode()).hexdigest()}"'
    if status == 200 and call.headers.get("if-none-match") == etag:
        await call.respond(304, b"", {"etag": etag, **_dashed(limit_headers(limit, "core"))})
        return
    limit.used += 1
    more = {"location": hub.url + data["url"]} if status == 301 else {"etag": etag}
    await hub.respond(call, status, data, **more, **limit_headers(limit, "core"))


def _dashed(headers: dict[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def secondary_limit(status: int = 403, retry_after: int | None = None, body: Any = None) -> Fault:
    """Refuse as GitHub does when requests are too many; without the header the client waits a minute."""

    async def fault(hub: Hub, call: Call) -> None:
        hub.wait_until = hub.clock.now() + (60 if retry_after is None else retry_after)
        more = {} if retry_after is None else {"retry_after": str(retry_after)}
        await hub.respond(call, status, body or {"message": SECONDARY}, x_ratelimit_remaining="4999", **more)

    return fault


async def bad_gateway(hub: Hub, call: Call) -> None:
    """Answer as GitHub's front end when a query takes too long."""
    page = b"<html>\r\n<head><title>502 Bad Gateway</title></head></html>\r\n"
    await call.respond(502, page, {"content-type": "text/html"})


def raw(status: int, body: bytes, **headers: str) -> Fault:
    """Answer with these bytes."""

    async def fault(_hub: Hub, call: Call) -> None:
        await call.respond(status, body, _dashed(headers))

    return fault


async def reset(_hub: Hub, call: Call) -> None:
    """Reset the connection."""
    await call.reset()


async def hang_up(_hub: Hub, call: Call) -> None:
    """Close the connection without an answer."""
    await call.hang_up()


async def cut(_hub: Hub, call: Call) -> None:
    """Close the connection within the answer."""
    await call.head(200, {"content-length": "1000", "content-type": "application/json"})
    await call.send(b'{"data": {"x0"')
    await call.hang_up()


async def stall(_hub: Hub, _call: Call) -> None:
    """Never answer."""
    await anyio.sleep_forever()


@asynccontextmanager
async def serving(world: World, clock: Clock | None = None) -> AsyncIterator[Hub]:
    """Serve ``world`` on a free port of the loopback, in the event loop of the test."""
    hub = Hub(world, clock or Clock())
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
    hub.url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
    serve = partial(serve_connection, handle=partial(handle, hub), idle_s=lambda: 60.0)
    async with listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, serve)
        yield hub
        tasks.cancel_scope.cancel()
    assert not hub.errors, hub.errors
