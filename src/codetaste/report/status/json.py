"""The status of a run as JSON data; the keys are documented in docs/programs.md and keep their meaning."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codetaste.orchestration.budget.node import CallState

if TYPE_CHECKING:
    from collections.abc import Sequence
    from decimal import Decimal

    from codetaste.report.status.job_detail import JobDetail
    from codetaste.report.status.model import JobStatus, RunStatus, Spend


def status_to_json(status: RunStatus) -> dict[str, Any]:
    """Return the status as JSON data; money is exact, as text; times are UTC."""
    left = None if status.limit_s is None else round(status.limit_s - status.used_s, 3)
    return {
        "directory": str(status.directory),
        "at": _moment(status.at),
        "owner": status.owner or None,
        "stop_reason": status.stop_reason or None,
        "error": status.error or None,
        "sessions": [
            {"at": _moment(each.at), "pid": each.pid, "host": each.host} for each in status.sessions
        ],
        "money": {
            **_spend(status.spend),
            "limit_usd": None if status.limit_usd is None else _usd(status.limit_usd),
            "usd_per_minute": _usd(round(status.usd_per_minute, 6)),
        },
        "time": {"used_s": round(status.used_s, 3), "limit_s": status.limit_s, "left_s": left},
        "limits": dict(status.limits),
        "concurrency": {
            each.resource: {"limit": each.limit, "in_use": each.in_use, "waiting": each.waiting}
            for each in status.capacities
        },
        "models": {
            model.id: {
                **_spend(model.spend),
                "calls": {state: model.spend.calls[state] for state in CallState},
                "tokens": dict(model.tokens),
                "retries": dict(model.retries),
                "price_source": model.price_source or None,
            }
            for model in status.models
        },
        "retries": dict(status.retries),
        "jobs": [job_to_json(job) for job in status.jobs],
        "products": [str(path) for path in status.products],
    }


def job_to_json(job: JobStatus) -> dict[str, Any]:
    """Return one job as JSON data."""
    return {
        "key": job.key,
        "model": job.model or None,
        "state": job.state,
        "since": _moment(job.since),
        "took_s": None if job.took_s is None else round(job.took_s, 3),
        "attempts": job.attempts,
        **_spend(job.spend),
        "waits": [
            {
                "reason": each.wait.reason,
                "detail": each.wait.detail or None,
                "delay_s": each.wait.delay_s,
                "since": _moment(each.since),
            }
            for each in job.waits
        ],
        "needs": list(job.needs),
        "retries": dict(job.retries),
        "cause": job.cause,
        "error": job.error or None,
        "ending": job.ending and job.ending.name,
        "ended_well": job.ending and job.ending.well,
        "reason": (job.ending and job.ending.reason) or None,
    }


def job_details_to_json(details: Sequence[JobDetail]) -> dict[str, Any]:
    """Return the details of some jobs as JSON data."""
    return {
        "jobs": [
            {
                **job_to_json(each.job),
                "title": each.title,
                "calls": [
                    {
                        "call": call.name,
                        "model": call.model,
                        "state": call.state,
                        "usd": _usd(call.usd),
                        "duration_s": None if call.duration_s is None else round(call.duration_s, 3),
                        "tokens": dict(call.tokens),
                    }
                    for call in each.calls
                ],
                "waited_s": {wait.text: round(seconds, 3) for wait, seconds in each.waited_s.items()},
                "notes": list(each.notes),
                "files": [str(path) for path in each.files],
            }
            for each in details
        ]
    }


def _spend(spend: Spend) -> dict[str, str]:
    return {
        "settled_usd": _usd(spend.settled_usd),
        "unknown_usd": _usd(spend.unknown_usd),
        "reserved_usd": _usd(spend.reserved_usd),
    }


def _usd(amount: Decimal) -> str:
    return format(amount, "f")


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
