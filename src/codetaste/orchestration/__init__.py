"""Jobs, budgets, journal and scheduler. Knows nothing of models or refactoring.

The names are looked up when they are used: whoever needs a small part of this room does not load all of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from codetaste.orchestration.budget import Budget, Cost, Limits, Reservation, Snapshot
    from codetaste.orchestration.job import Job, JobContext, Outcome, Paid, Status
    from codetaste.orchestration.journal import Json
    from codetaste.orchestration.session import Session, open_session

__all__ = [
    "Budget",
    "Cost",
    "Job",
    "JobContext",
    "Json",
    "Limits",
    "Outcome",
    "Paid",
    "Reservation",
    "Session",
    "Snapshot",
    "Status",
    "open_session",
]

_HOMES = {
    "budget": ("Budget", "Cost", "Limits", "Reservation", "Snapshot"),
    "job": ("Job", "JobContext", "Outcome", "Paid", "Status"),
    "journal": ("Json",),
    "session": ("Session", "open_session"),
}


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{home}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
