"""One job with a budget and a journal, for what is paid."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

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


def make_scripted_model(folder: Path, script: Any, model_id: str = "m") -> MeteredModel:
    """Make a metered scripted model."""
    model = ScriptedModel(model_id, script, price=PRICE, ledger=folder / f"{model_id}.ledger.jsonl")
    return MeteredModel(model, PRICE, RateLimiter(model_id, maximum=8), retries={})


async def run_job(
    folder: Path, body: Callable[[JobContext], Awaitable[Json]], *, usd: str = "10"
) -> tuple[Outcome, BudgetSnapshot]:
    """Run ``body`` as the only job of a session, and return its outcome and what the session has cost."""
    async with open_session(folder / "run", BudgetLimits(usd=Decimal(usd)), retries={}) as session:
        outcomes = await session.run([closure_job(session, "job", body, session.budget, "f")])
        return outcomes["job"], session.budget.snapshot()
