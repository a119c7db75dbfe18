"""Jobs, budgets, journal and scheduler. Knows nothing of models or refactoring."""

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
