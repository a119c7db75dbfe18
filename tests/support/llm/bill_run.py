"""Concurrent conversations with several models for the bill tests, in process or as a program to kill.

``python bill_run.py FOLDER`` runs the workload in ``FOLDER/plan.json`` and prints settled and unknown US$.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any

import anyio

from codetaste.errors import BudgetExceeded, Cause, ModelError
from codetaste.llm.build import build_model
from codetaste.llm.config import ModelConfig
from codetaste.llm.messages import Message, Request, TextBlock, ToolResult, ToolSpec
from codetaste.llm.metering.metered import MeteredModel
from codetaste.llm.price_table import price_of
from codetaste.llm.ratelimit.limiter import RateLimiter
from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot
from codetaste.orchestration.job import JobContext, Outcome
from codetaste.orchestration.journal.journal import Json
from codetaste.orchestration.retry import RetryRule
from codetaste.orchestration.session import Session, open_session
from support.orchestration.closure_jobs import closure_job

KEY_ENV = "CODETASTE_TEST_KEY"
KEY = "sk-dummy-key-of-a-test"
TOOL = ToolSpec("look", "Look at a place.", {"type": "object", "properties": {"at": {"type": "string"}}})
SYSTEM = "Be brief. " * 30
QUICK = {
    cause: RetryRule(tries=5, first_s=0.005, max_s=0.02)
    for cause in (Cause.RATE_LIMIT, Cause.UNAVAILABLE, Cause.MALFORMED)
}
RATES = {
    "cheap": {"input": "0.25", "output": "1.25", "cache_read": "0.025", "cache_write": "0.3125"},
    "expensive": {"input": "3", "output": "15", "cache_read": "0.3", "cache_write": "3.75"},
}


@dataclass(frozen=True)
class Workload:
    """``jobs`` conversations of ``turns`` turns with each of two models, all under one budget.

    ``model_usd`` are the budgets of the models, ``job_usd`` that of each conversation, within ``usd``.
    """

    protocol: str
    urls: Sequence[str]
    usd: str = "50"
    model_usd: tuple[str, str] = ("50", "50")
    job_usd: str = "50"
    jobs: int = 4
    turns: int = 4
    permits: int = 3
    timeout_s: float = 30.0
    seed: int = 0
    cap: int = 2000
    rerun: bool = False

    @property
    def limits(self) -> dict[tuple[str, ...], Decimal]:
        """US dollars by path, as ``audit_run`` takes them."""
        limits = {(): Decimal(self.usd)}
        for name, share in zip(RATES, self.model_usd, strict=True):
            limits[name,] = Decimal(share)
            limits |= {(name, f"talk-{number}"): Decimal(self.job_usd) for number in range(self.jobs)}
        return limits


@dataclass(frozen=True)
class RunResult:
    outcomes: dict[str, Outcome]
    spent: BudgetSnapshot


@contextmanager
def key_in_environment() -> Iterator[None]:
    os.environ[KEY_ENV] = KEY
    try:
        yield
    finally:
        os.environ.pop(KEY_ENV, None)


def make_model(name: str, protocol: str, url: str, folder: Path, **more: Any) -> MeteredModel:
    """Build a model with its official client from a config, but with quick retries."""
    permits, rng = more.pop("permits", 16), more.pop("rng", None) or Random()
    retries, patience_s = more.pop("retries", QUICK), more.pop("patience_s", 60.0)
    step_s = more.pop("step_s", 0.02)
    base = url if protocol == "anthropic" else f"{url}/v1"
    fields: dict[str, Any] = {
        "price": RATES.get(name, RATES["expensive"]),
        "max_concurrency": permits,
        **more,
    }
    config = ModelConfig(id=name, provider=protocol, model=name, base_url=base, api_key_env=KEY_ENV, **fields)
    with key_in_environment():
        model = build_model(config, base_dir=folder, record_dir=folder)
    # Scaled down like the provider's times: it refuses within milliseconds.
    limiter = RateLimiter(name, maximum=permits, patience_s=patience_s, step_s=step_s, rng=rng)
    return MeteredModel(model, price_of(config), limiter, retries=retries, rng=rng)


def question(name: str) -> TextBlock:
    """Return a question that the provider can tell from all others."""
    return TextBlock(f"What is there? [asked {name}] " + "Please. " * 20)


async def run_conversation(
    model: MeteredModel, ctx: JobContext, turns: int, cap: int = 2000, *, pause_s: float = 0.0
) -> Json:
    """Run some turns, answering every tool call; a failed turn ends the conversation."""
    messages: list[Message] = [Message("user", (question(f"{ctx.key}/turn-0"),))]
    for turn in range(turns):
        request = Request(SYSTEM, tuple(messages), (TOOL,), max_output_tokens=cap)
        reply = await model.complete(request, ctx=ctx, name=f"turn-{turn}")
        await anyio.sleep(pause_s)
        results = tuple(ToolResult(call.id, call.fault or "seen") for call in reply.message.tool_calls)
        messages += [reply.message, Message("user", (*results, question(f"{ctx.key}/turn-{turn + 1}")))]
    return "done"


async def run(workload: Workload, folder: Path, *, stopped: Callable[[], bool] = lambda: False) -> RunResult:
    """Run all conversations; the result of one that fails, or exceeds its budget, is the error message.

    The run is stopped, as by a user, once ``stopped()``.
    """
    rng = Random(workload.seed)
    models = {
        name: make_model(
            name,
            workload.protocol,
            workload.urls[number % len(workload.urls)],
            folder,
            permits=workload.permits,
            timeout=workload.timeout_s,
            rng=rng,
        )
        for number, name in enumerate(RATES)
    }

    def body(model: MeteredModel) -> Any:
        async def work(ctx: JobContext) -> Json:
            try:
                return await run_conversation(model, ctx, workload.turns, workload.cap)
            except (BudgetExceeded, ModelError) as error:
                return str(error)

        return work

    rerun: Any = "all" if workload.rerun else frozenset()
    async with open_session(
        folder / "run", BudgetLimits(usd=Decimal(workload.usd)), retries={}, grace_s=5.0, rerun=rerun
    ) as session:
        jobs = []
        for (name, model), share in zip(models.items(), workload.model_usd, strict=True):
            node = session.budget.child(name, BudgetLimits(usd=Decimal(share)))
            for number in range(workload.jobs):
                own = node.child(f"talk-{number}", BudgetLimits(usd=Decimal(workload.job_usd)))
                jobs.append(closure_job(session, f"{name}-{number}", body(model), own, "f"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_stop, session, stopped)
            outcomes = await session.run(jobs)
            tasks.cancel_scope.cancel()
        spent = session.budget.snapshot()
    for model in models.values():
        await model.aclose()
    return RunResult(outcomes, spent)


async def _stop(session: Session, stopped: Callable[[], bool]) -> None:
    while not stopped():  # noqa: ASYNC110 - a server in another thread sets the condition
        await anyio.sleep(0.005)
    session.drain()


def write_workload(workload: Workload, folder: Path) -> Path:
    """Write the workload for a separate process."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plan.json").write_text(json.dumps(asdict(workload)))
    return folder


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    result = anyio.run(run, Workload(**json.loads((folder / "plan.json").read_text())), folder)
    sys.stdout.write(f"{result.spent.settled.usd} {result.spent.unknown.usd}\n")
