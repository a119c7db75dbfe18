"""Programs that talk to a real provider through the gateway, and a provider's bill against the books.

Each program goes on as a coding agent does: it answers the tool calls of a reply, and asks again. What it
asks carries the name of the call in the books, so that the audit can tell which billed call is which.
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
from support.gateway.jobs import PATHS, admitted
from support.llm.bill_run import KEY_ENV, QUICK, RATES, key_in_environment
from support.orchestration.closure_jobs import closure_job


def provided(
    protocol: str, url: str, folder: Path, name: str = "expensive", *, slots: int = 16, **more: Any
) -> GatewayModel:
    """A model behind a provider on the loopback, with quick retries."""
    rng, retries = Random(0), more.pop("retries", QUICK)
    base = url if protocol == "anthropic" else f"{url}/v1"
    fields: dict[str, Any] = {"price": RATES[name], "max_concurrency": slots, **more}
    config = ModelConfig(id=name, provider=protocol, model=name, base_url=base, api_key_env=KEY_ENV, **fields)
    with key_in_environment():
        model = build_model(config, base_dir=folder, record_dir=folder)
        upstream = Upstream(PROTOCOLS[protocol], config)
    limiter = RateLimiter(name, maximum=slots, patience_s=60.0, step_s=0.02, rng=rng)
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
class Talk:
    """``jobs`` programs of ``turns`` requests each, all under ``usd``, and each under ``each``."""

    protocol: str
    url: str
    usd: str = "50"
    each: str = "50"
    jobs: int = 4
    turns: int = 6
    slots: int = 3
    cap: int = 2000
    seed: int = 0
    timeout_s: float = 30.0
    hang_ups: float = 0.0

    @property
    def limits(self) -> dict[tuple[str, ...], Decimal]:
        own = {(f"talk-{number}",): Decimal(self.each) for number in range(self.jobs)}
        return {(): Decimal(self.usd), **own}


async def hold(talk: Talk, folder: Path) -> tuple[dict[str, Outcome], BudgetSnapshot]:
    """Hold all conversations; what each job returns is its tally."""
    model = provided(talk.protocol, talk.url, folder, slots=talk.slots, timeout=talk.timeout_s)
    async with (
        open_session(folder / "run", BudgetLimits(usd=Decimal(talk.usd)), retries={}, grace_s=5.0) as session,
        open_gateway({model.id: model}, folder / "run") as gateway,
    ):

        def body(number: int) -> Any:
            async def work(ctx: JobContext) -> Json:
                return await converse(talk, ctx, gateway, Random(f"{talk.seed}/{number}"))

            return work

        jobs = [
            closure_job(
                session,
                f"job-{n}",
                body(n),
                session.budget.child(f"talk-{n}", BudgetLimits(usd=Decimal(talk.each))),
                "f",
            )
            for n in range(talk.jobs)
        ]
        outcomes = await session.run(jobs)
        return outcomes, session.budget.snapshot()


async def converse(talk: Talk, ctx: JobContext, gateway: Gateway, rng: Random) -> Json:
    statuses: list[int] = []
    async with admitted(ctx, gateway, talk.protocol, ["expensive"], name=f"{ctx.key}.jsonl") as (
        access,
        client,
    ):
        program = Program(talk.protocol, client)
        for _ in range(talk.turns):
            name = f"{ctx.key}/gateway/attempt-{ctx.attempt}/call-{access.usage.requests + 1}"
            program.say(f"What is there? [asked {name}] Please go on.")
            leaves = rng.random() < talk.hang_ups
            statuses.append(
                await program.ask(talk.cap, stream=rng.random() < 0.7, leave_after=0.0 if leaves else None)
            )
            if access.usage.budget_refusal:
                break
        tally = access.usage
    return {
        "statuses": statuses,
        "refused": tally.budget_refusal,
        "settled": str(tally.settled_usd),
        "unknown": str(tally.unknown_usd),
        "requests": tally.requests,
        "turns": tally.turns,
    }


class Program:
    """A coding agent without a mind: it does nothing and asks again."""

    def __init__(self, protocol: str, client: httpx.AsyncClient) -> None:
        self.protocol, self.client = protocol, client
        self.said: list[Any] = []
        self.pieces: list[bytes] = []

    def say(self, words: str) -> None:
        self.said.append({"role": "user", "content": words})

    def body(self, cap: int, *, stream: bool) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"at": {"type": "string"}}}
        tool: dict[str, Any] = {"name": "look", "description": "Look.", "input_schema": schema}
        if self.protocol == "anthropic":
            body: dict[str, Any] = {"system": "Be brief. " * 30, "messages": self.said, "max_tokens": cap}
        elif self.protocol == "openai":
            tool = {"type": "function", "name": "look", "parameters": schema}
            body = {"input": self.said, "max_output_tokens": cap}
        else:
            tool = {"type": "function", "function": {"name": "look", "parameters": schema}}
            body = {"messages": self.said, "max_tokens": cap}
        return {"model": "expensive", **body, "tools": [tool], "stream": stream}

    async def ask(self, cap: int, *, stream: bool, leave_after: float | None = None) -> int:
        """Ask and take what comes into the conversation; a program that leaves takes nothing."""
        self.pieces = []
        try:
            async with self.client.stream(
                "POST", PATHS[self.protocol], json=self.body(cap, stream=stream)
            ) as answer:
                async for piece in answer.aiter_raw():
                    self.pieces.append(piece)
                    if leave_after is not None:
                        await anyio.sleep(leave_after)
                        return -1
                status = answer.status_code
        except httpx.RemoteProtocolError:
            return -2
        self.said.pop()
        if status == 200:
            self.said.append({"role": "user", "content": "Go on."})
            self.said.append({"role": "assistant", "content": f"I saw {len(b''.join(self.pieces))} bytes."})
        return status

    @property
    def heard(self) -> bytes:
        return b"".join(self.pieces)


def said_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
