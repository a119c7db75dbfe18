"""Agents that send requests to a provider through the gateway, for audits of the bill against the journal.

Like a coding agent, each one adds a reply to its conversation and sends the next request. A request contains
the journal's name of the call, by which the audit identifies the billed call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import anyio
import httpx

from codetaste.gateway.gateway import Gateway, open_gateway
from codetaste.gateway.upstream import GatewayModel, Upstream
from codetaste.llm.build import build_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price_table import price_of
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.llm.wire.protocols import PROTOCOLS
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.session import open_session
from support.gateway.jobs import PATHS, admit_client
from support.llm.bill_run import KEY_ENV, QUICK, RATES, key_in_environment
from support.orchestration.closure_jobs import closure_job


def make_gateway_model(
    protocol: str, url: str, folder: Path, name: str = "expensive", *, permits: int = 16, **more: Any
) -> GatewayModel:
    """Make a model of a provider on the loopback, with quick retries."""
    rng, retries = Random(0), more.pop("retries", QUICK)
    base = url if protocol == "anthropic" else f"{url}/v1"
    fields: dict[str, Any] = {"price": RATES[name], "max_concurrency": permits, **more}
    config = ModelConfig(id=name, provider=protocol, model=name, base_url=base, api_key_env=KEY_ENV, **fields)
    with key_in_environment():
        model = build_model(config, base_dir=folder, record_dir=folder)
        upstream = Upstream(PROTOCOLS[protocol], config)
    limiter = RateLimiter(name, maximum=permits, patience_s=60.0, step_s=0.02, rng=rng)
    metered = MeteredModel(
        model,
        price_of(config),
        limiter,
        max_output_tokens=config.max_output_tokens,
        retries=retries,
        rng=rng,
    )
    return GatewayModel(metered, name, upstream)


@dataclass(frozen=True)
class Workload:
    """``jobs`` agents with ``turns`` requests each; budgets are ``usd`` for all and ``each`` for one."""

    protocol: str
    url: str
    usd: str = "50"
    each: str = "50"
    jobs: int = 4
    turns: int = 6
    permits: int = 3
    cap: int = 2000
    seed: int = 0
    timeout_s: float = 30.0
    hang_ups: float = 0.0

    @property
    def limits(self) -> dict[tuple[str, ...], Decimal]:
        own = {(f"talk-{number}",): Decimal(self.each) for number in range(self.jobs)}
        return {(): Decimal(self.usd), **own}


async def run_workload(workload: Workload, folder: Path) -> tuple[dict[str, Outcome], BudgetSnapshot]:
    """Run all agents; each job returns its usage."""
    model = make_gateway_model(
        workload.protocol, workload.url, folder, permits=workload.permits, timeout=workload.timeout_s
    )
    async with (
        open_session(
            folder / "run", BudgetLimits(usd=Decimal(workload.usd)), retries={}, grace_s=5.0
        ) as session,
        open_gateway({model.id: model}, folder / "run") as gateway,
    ):

        def body(number: int) -> Any:
            async def work(ctx: JobContext) -> Json:
                return await run_client_job(workload, ctx, gateway, Random(f"{workload.seed}/{number}"))

            return work

        jobs = [
            closure_job(
                session,
                f"job-{n}",
                body(n),
                session.budget.child(f"talk-{n}", BudgetLimits(usd=Decimal(workload.each))),
                "f",
            )
            for n in range(workload.jobs)
        ]
        outcomes = await session.run(jobs)
        return outcomes, session.budget.snapshot()


async def run_client_job(workload: Workload, ctx: JobContext, gateway: Gateway, rng: Random) -> Json:
    statuses: list[int] = []
    async with admit_client(ctx, gateway, workload.protocol, ["expensive"], name=f"{ctx.key}.jsonl") as (
        access,
        client,
    ):
        agent = AgentClient(workload.protocol, client)
        for _ in range(workload.turns):
            name = f"{ctx.key}/gateway/attempt-{ctx.attempt}/call-{access.usage.requests + 1}"
            agent.add_user_message(f"What is there? [asked {name}] Please go on.")
            hangs_up = rng.random() < workload.hang_ups
            statuses.append(
                await agent.send(
                    workload.cap, stream=rng.random() < 0.7, hang_up_after=0.0 if hangs_up else None
                )
            )
            if access.usage.budget_refusal:
                break
        usage = access.usage
    return {
        "statuses": statuses,
        "refused": usage.budget_refusal,
        "settled": str(usage.settled_usd),
        "unknown": str(usage.unknown.usd),
        "requests": usage.requests,
        "turns": usage.turns,
    }


class AgentClient:
    """A minimal coding agent: it calls no tool and sends the next request."""

    def __init__(self, protocol: str, client: httpx.AsyncClient) -> None:
        self.protocol, self.client = protocol, client
        self.messages: list[Any] = []
        self.chunks: list[bytes] = []

    def add_user_message(self, text: str) -> None:
        self.messages.append({"role": "user", "content": text})

    def body(self, cap: int, *, stream: bool) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"at": {"type": "string"}}}
        tool: dict[str, Any] = {"name": "look", "description": "Look.", "input_schema": schema}
        if self.protocol == "anthropic":
            body: dict[str, Any] = {"system": "Be brief. " * 30, "messages": self.messages, "max_tokens": cap}
        elif self.protocol == "openai":
            tool = {"type": "function", "name": "look", "parameters": schema}
            body = {"input": self.messages, "max_output_tokens": cap}
        else:
            tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
            body = {"messages": self.messages, "max_tokens": cap}
        return {"model": "expensive", **body, "tools": [tool], "stream": stream}

    async def send(self, cap: int, *, stream: bool, hang_up_after: float | None = None) -> int:
        """Send a request and add the reply to the conversation, unless the client hangs up."""
        self.chunks = []
        try:
            async with self.client.stream(
                "POST", PATHS[self.protocol], json=self.body(cap, stream=stream)
            ) as response:
                async for chunk in response.aiter_raw():
                    self.chunks.append(chunk)
                    if hang_up_after is not None:
                        await anyio.sleep(hang_up_after)
                        return -1
                status = response.status_code
        except httpx.RemoteProtocolError:
            return -2
        self.messages.pop()
        if status == 200:
            self.messages.append({"role": "user", "content": "Go on."})
            self.messages.append(
                {"role": "assistant", "content": f"I saw {len(b''.join(self.chunks))} bytes."}
            )
        return status

    @property
    def received(self) -> bytes:
        return b"".join(self.chunks)


def read_json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
