"""Test runs as values of jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from codetaste.evaluation.test_runs.test_run import TestRun

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from codetaste.orchestration.job import JobContext
    from codetaste.orchestration.journal.journal import Json


async def store_run(run: TestRun, job: JobContext) -> Json:
    """Return the run as a job's value; its tests, which may be thousands, are a text of their own."""
    data = run.to_json()
    return {**data, "cases": await job.store_text(json.dumps(data["cases"]))}


async def load_run(value: Any, load_text: Callable[[str], Awaitable[str]]) -> TestRun:  # noqa: ANN401 - JSON
    """Return the run that ``store_run`` stored.

    Raises:
        JournalError: its text is missing or damaged.
    """
    return TestRun.from_json({**value, "cases": json.loads(await load_text(value["cases"]))})
