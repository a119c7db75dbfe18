"""Why a job waits: a reason from a fixed list, and what exactly it waits for."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class WaitReason(StrEnum):
    """The kind of a wait. The values of JOBS, SANDBOX and CPU are the names of the resources."""

    JOBS = "jobs"
    SANDBOX = "sandbox"
    CPU = "cpu"
    NEED = "need"
    RETRY = "retry"
    BUDGET = "budget"
    REPLAY = "replay"
    LEFTOVER = "leftover"
    PERMIT = "permit"
    RATE_LIMIT = "rate_limit"
    OVERLOADED = "overloaded"
    CALL_RETRY = "call_retry"
    TESTS = "tests"

    @property
    def of_model(self) -> bool:
        """Whether the wait is for a model, whose id is the detail."""
        return self in {self.PERMIT, self.RATE_LIMIT, self.OVERLOADED, self.CALL_RETRY}


_TEXTS = {
    WaitReason.JOBS: "a job permit",
    WaitReason.SANDBOX: "a sandbox",
    WaitReason.CPU: "a CPU",
    WaitReason.NEED: "{}",
    WaitReason.RETRY: "its next attempt",
    WaitReason.BUDGET: "budget",
    WaitReason.REPLAY: "the replay in a new sandbox",
    WaitReason.LEFTOVER: "what {} leaves",
    WaitReason.PERMIT: "a permit of {}",
    WaitReason.RATE_LIMIT: "{}: rate limit (429)",
    WaitReason.OVERLOADED: "{}: overloaded",
    WaitReason.CALL_RETRY: "{}: retry of a call",
    WaitReason.TESTS: "test runs of {}",
}


@dataclass(frozen=True, slots=True)
class Wait:
    """A wait for ``detail``: a model id or a job's key, or "".

    ``delay_s`` is the announced length, if there is one; waits that differ only in it are equal.
    """

    reason: WaitReason
    detail: str = ""
    delay_s: float | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """What the job waits for, for humans, without the length."""
        return _TEXTS[self.reason].format(self.detail)

    def __str__(self) -> str:
        return self.text if self.delay_s is None else f"{self.text}, {self.delay_s:.0f} s"
