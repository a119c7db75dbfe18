"""Sums over the jobs of one trial: money, tokens, times, waits apart from work."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from codetaste.llm.messages import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from codetaste.results.rows.job import JobResult

_SECONDS = {
    "queued_s": ("queued_needs_s", "queued_resources_s"),
    "retry_s": ("retry_s",),
    "working_s": ("working_s",),
    "waiting_s": ("waiting_s",),
}


def job_totals(jobs: Sequence[JobResult], tokens: Mapping[str, int] | None = None) -> dict[str, Any]:
    """Return the columns of a trial that are sums over its ``jobs``; None where there is no job.

    Args:
        jobs: those that belong to the trial alone.
        tokens: by kind, for trials of whose calls no journal has the tokens.
    """
    found: dict[str, Any] = {
        "settled_usd": _sum(jobs, "settled_usd"),
        "unknown_usd": _sum(jobs, "unknown_usd", "reserved_usd"),
        "calls": sum(job.calls for job in jobs) if jobs else None,
    }
    of_calls = [each for each in jobs if each.calls]
    for kind in Usage.KINDS:
        counts = [getattr(each, f"tokens_{kind}") for each in of_calls]
        counted = None if None in counts else sum(counts)
        found[f"tokens_{kind}"] = counted if of_calls else (tokens or {}).get(kind)
    starts = [each.started_at for each in jobs if each.started_at]
    ends = [each.ended_at for each in jobs if each.ended_at]
    found["started_at"] = min(starts, default=None)
    found["ended_at"] = max(ends) if len(ends) == len(jobs) and ends else None
    return found | {name: _sum(jobs, *parts) for name, parts in _SECONDS.items()}


def _sum(jobs: Sequence[JobResult], *names: str) -> float | None:
    values = [getattr(job, name) for job in jobs for name in names]
    return round(math.fsum(values), 9) if values else None
