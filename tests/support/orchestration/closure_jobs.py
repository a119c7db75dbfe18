"""Jobs for tests that run a closure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.orchestration.budget.cost import BudgetPath, NamedLimits
from codetaste.orchestration.job import Job

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.orchestration.budget.budget import Budget
    from codetaste.orchestration.job import JobContext, Json
    from codetaste.orchestration.session import Session


def closure_job(
    session: Session,
    key: str,
    run: Callable[[JobContext], Awaitable[Json]],
    budget: Budget,
    fingerprint: str,
    **options: Any,
) -> Job:
    """Return a job that runs ``run``; its key is also its kind in ``session``."""
    session.add_handlers({key: lambda _job, context: run(context)})
    return Job(key, key, budget_path(budget), fingerprint, **options)


def budget_path(budget: Budget) -> BudgetPath:
    """Return the nodes that lead to ``budget``, with their present limits."""
    return tuple(NamedLimits(node.path[-1], node.limits) for node in budget.chain[1:])
