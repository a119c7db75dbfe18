"""The result of one agent run in a sandbox, filled in while the agent runs.

So every ending from outside (budget, time limit, Ctrl-C, a sandbox that dies) finds all facts known by then.
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
"""Finish reasons of the published layout (DESIGN §6); UNKNOWN: the agent still runs, or was stopped."""
EXECUTION_ERROR, ERROR = "execution_error", "error"
"""EXECUTION_ERROR is the agent's own fault; ERROR means that something the agent needed failed."""
_NOTABLE = 0.01
"""Largest difference between metered and reported cost that is not noted, as a share of the metered cost."""


def now() -> str:
    """Return the current time as the published layout writes it: ISO 8601 with the time zone."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class Effort:
    """The result of one agent's run on one task.

    ``metered_usd`` is the cost that the gateway measured, None where no gateway was used; ``reported_usd`` is
    the cost that the CLI agent reports, None where it reports none.
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
    """Why calls to the model's provider were given up; "" if they were not."""
    started: str = field(default_factory=now)
    finished: str = ""

    def count(self, usage: Usage | None) -> None:
        """Add the tokens of one reply."""
        if usage is not None:
            self.usage = total((self.usage, usage))

    def difference(self) -> float | None:
        """Return |reported - metered| / metered; None where either is unknown."""
        if self.metered_usd is None or self.told_usd is None:
            return None
        if not self.metered_usd:
            return 0.0 if not self.told_usd else float("inf")
        return float(abs(self.told_usd - self.metered_usd) / self.metered_usd)

    def notable(self) -> str:
        """Return a note if reported and metered cost differ by more than one per cent, "" otherwise."""
        share = self.difference()
        if share is None or share <= _NOTABLE or self.told_usd is None or self.metered_usd is None:
            return ""
        reported, metered = exact_usd(self.told_usd), exact_usd(self.metered_usd)
        return f"the agent reports a cost of ${reported}; ${metered} was measured"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        data: dict[str, Any] = {
            "finish_reason": self.finish_reason,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "tokens": usage_to_json(self.usage),
            "start_time": self.started,
            "finish_time": self.finished or now(),
        }
        if self.message:
            data["message"] = self.message
        if self.exit_code is not None:
            data["exit_code"] = self.exit_code
        if self.metered_usd is not None:
            data["cost_usd"] = exact_usd(self.metered_usd)
        if self.told_usd is not None:
            data["program_cost_usd"] = exact_usd(self.told_usd)
        if self.notable():
            data["cost_difference"] = self.notable()
        return data


def total(usages: Iterable[Usage]) -> Usage:
    """Add up tokens by kind."""
    listed = list(usages)
    return Usage(
        *(
            sum(getattr(usage, kind) for usage in listed)
            for kind in ("input", "cache_read", "cache_write", "output", "reasoning")
        )
    )
