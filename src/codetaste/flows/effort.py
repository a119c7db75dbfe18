"""What an agent's work in one box came to, as far as it is known: filled in as the work goes on.

So an ending from outside (the budget, the time limit, Ctrl-C, a box that dies) finds all that there is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codetaste.llm.codec import usage_to_json
from codetaste.llm.messages import Usage
from codetaste.units import exact_usd

if TYPE_CHECKING:
    from collections.abc import Iterable
    from decimal import Decimal

UNKNOWN, SUCCESS, TIMEOUT, BUDGET = "unknown", "success", "timeout", "budget_exceeded"
"""Finish reasons of the published layout (DESIGN §6); UNKNOWN is still at work, or was stopped."""
EXECUTION_ERROR, ERROR = "execution_error", "error"
"""The agent's own fault, and nobody's: what it needed failed."""
_NOTABLE = 0.01
"""The difference between our number and the program's that is worth telling, as a share of ours."""


def now() -> str:
    """Return the time as the published layout writes it: ISO 8601, with the zone."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class Effort:
    """One agent's work on one task.

    ``metered_usd`` is what the gateway measured, None where no gateway was between; ``told_usd`` what the
    program says of itself, None where it says nothing.
    """

    finish_reason: str = UNKNOWN
    message: str = ""
    turns: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    exit_code: int | None = None
    metered_usd: Decimal | None = None
    told_usd: Decimal | None = None
    failed: str = ""
    """Why the model's provider was given up, "" if it was not."""
    started: str = field(default_factory=now)
    finished: str = ""

    def count(self, usage: Usage | None) -> None:
        """Add what one reply used."""
        if usage is not None:
            self.usage = total((self.usage, usage))

    def difference(self) -> float | None:
        """Return how far the program's own number is from ours, as a share of ours; None if unknown."""
        if self.metered_usd is None or self.told_usd is None:
            return None
        if not self.metered_usd:
            return 0.0 if not self.told_usd else float("inf")
        return float(abs(self.told_usd - self.metered_usd) / self.metered_usd)

    def notable(self) -> str:
        """Say that the two numbers differ by more than one per cent, "" if they do not."""
        share = self.difference()
        if share is None or share <= _NOTABLE or self.told_usd is None or self.metered_usd is None:
            return ""
        told, metered = exact_usd(self.told_usd), exact_usd(self.metered_usd)
        return f"the program says that it cost ${told}; measured were ${metered}"

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data."""
        said: dict[str, Any] = {
            "finish_reason": self.finish_reason,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "tokens": usage_to_json(self.usage),
            "start_time": self.started,
            "finish_time": self.finished or now(),
        }
        if self.message:
            said["message"] = self.message
        if self.exit_code is not None:
            said["exit_code"] = self.exit_code
        if self.metered_usd is not None:
            said["cost_usd"] = exact_usd(self.metered_usd)
        if self.told_usd is not None:
            said["program_cost_usd"] = exact_usd(self.told_usd)
        if self.notable():
            said["cost_difference"] = self.notable()
        return said


def total(usages: Iterable[Usage]) -> Usage:
    """Add up tokens by kind."""
    listed = list(usages)
    return Usage(
        *(
            sum(getattr(usage, kind) for usage in listed)
            for kind in ("input", "cache_read", "cache_write", "output", "reasoning")
        )
    )
