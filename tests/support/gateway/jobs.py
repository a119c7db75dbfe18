"""Run jobs with a gateway in tests: a session whose jobs send requests to the gateway as CLI agents do."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import httpx
from anyio.abc import SocketStream

from codetaste.gateway.gateway import Gateway, open_gateway
from codetaste.gateway.session import GatewaySession
from codetaste.gateway.upstream import GatewayModel
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price import Price
from codetaste.llm.providers.scripted import ScriptedModel
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.orchestration.closure_jobs import closure_job

PRICE = Price(input=Decimal(3), output=Decimal(15))
PATHS = {"anthropic": "/v1/messages", "openai": "/v1/responses", "openai-chat": "/v1/chat/completions"}
PROTOCOLS = tuple(PATHS)
JobBody = Callable[[JobContext, Gateway], Awaitable[Json]]


def make_scripted_model(folder: Path, script: Any, model_id: str = "m", *, permits: int = 8) -> GatewayModel:
    """Make a scripted model for a gateway."""
    model = ScriptedModel(model_id, script, price=PRICE, ledger=folder / f"{model_id}.ledger.jsonl")
    return GatewayModel(
        MeteredModel(model, PRICE, RateLimiter(model_id, maximum=permits)), f"{model_id}-of-provider"
    )


async def run_job(
    folder: Path,
    models: list[GatewayModel],
    body: JobBody,
    *,
    usd: str | None = None,
    tokens: int | None = None,
    **more: Any,
) -> tuple[Outcome, BudgetSnapshot]:
    """Run a session with a gateway and one job."""
    limits = BudgetLimits(usd=None if usd is None else Decimal(usd), tokens=tokens)
    async with (
        open_session(folder / "run", limits, retries={}, grace_s=more.pop("grace_s", 5.0)) as session,
        open_gateway({model.id: model for model in models}, folder / "run", **more) as gateway,
    ):

        async def work(ctx: JobContext) -> Json:
            return await body(ctx, gateway)

        outcomes = await session.run([closure_job(session, "job", work, session.budget, "f")])
        return outcomes["job"], session.budget.snapshot()


@asynccontextmanager
async def admit_client(
    ctx: JobContext,
    gateway: Gateway,
    protocol: Any = "anthropic",
    models: list[str] | None = None,
    *,
    name: str = "transcript.jsonl",
) -> AsyncIterator[tuple[GatewaySession, httpx.AsyncClient]]:
    """Open a gateway session for a job, and a client with its token."""
    transcript = gateway.socket.parent.parent / name
    async with (
        gateway.admit(ctx, models=models or ["m"], protocol=protocol, transcript=transcript) as access,
        open_client(gateway, access.token) as client,
    ):
        yield access, client


@contextmanager
def open_short_path(gateway: Gateway) -> Iterator[str]:
    """Yield a short path of the gateway's socket, as the full path may exceed the limit of socket names."""
    folder = os.open(gateway.socket.parent, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/{gateway.socket.name}"
    finally:
        os.close(folder)


async def connect(gateway: Gateway) -> SocketStream:
    """Connect to the gateway's socket."""
    with open_short_path(gateway) as path:
        return await anyio.connect_unix(path)


@asynccontextmanager
async def open_client(gateway: Gateway, token: str) -> AsyncIterator[httpx.AsyncClient]:
    """Open an HTTP client on the gateway's socket."""
    headers = {"x-api-key": token}
    with open_short_path(gateway) as path:
        transport = httpx.AsyncHTTPTransport(uds=path)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://gateway", headers=headers, timeout=120.0
        ) as client:
            yield client


def make_request(protocol: str, text: str = "hello", **more: Any) -> dict[str, Any]:
    """Make a request body with one tool."""
    messages = [{"role": "user", "content": text}]
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    match protocol:
        case "anthropic":
            tool = {"name": "bash", "description": "Run it.", "input_schema": schema}
            body: dict[str, Any] = {"messages": messages, "max_tokens": 2000, "system": "Be short."}
        case "openai":
            tool = {"type": "function", "name": "bash", "description": "Run it.", "parameters": schema}
            body = {
                "input": [{"type": "message", **messages[0]}],
                "instructions": "Be short.",
                "store": False,
            }
        case _:
            tool = {"type": "function", "function": {"name": "bash", "parameters": schema}}
            body = {"messages": [{"role": "system", "content": "Be short."}, *messages], "max_tokens": 2000}
    return {"model": "m", **body, "tools": [tool], **more}


def read_journal(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "run" / "journal.jsonl").read_text().splitlines()]


def read_transcript_lines(folder: Path) -> list[dict[str, Any]]:
    """Return the transcript's lines so far; there are none before the first request."""
    path = folder / "run" / "transcript.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
