"""The result of one agent run in a sandbox, filled in while the agent runs.

So every ending from outside (budget, time limit, Ctrl-C, a sandbox that dies) finds all facts known by then.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from codetaste.benchmark.layout import FinishReason
from codetaste.core.units import format_exact_usd
from codetaste.llm.codec import usage_to_json
from codetaste.llm.messages import Usage
from codetaste.orchestration.shortfall import Shortfall

if TYPE_CHECKING:
    from codetaste.errors import CodetasteError

_NOTABLE = Decimal("0.01")
"""Largest difference between metered and reported cost that is not noted, as a share of the metered cost."""


def utc_now() -> str:
    """Return the current time as the published layout writes it: ISO 8601 with the time zone."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(slots=True)
class AgentRunResult:
    """The result of one agent's run on one task.

    ``metered_usd`` is the cost that the gateway measured, None where no gateway was used; ``reported_usd`` is
    the cost that the CLI agent reports, None where it reports none.
    """

    finish_reason: FinishReason = FinishReason.UNKNOWN
    message: str = ""
    turns: int = 0
    tool_calls: int = 0
    usage: Usage | None = field(default_factory=Usage)
    """Tokens of all replies; None if those of one are unknown."""
    exit_code: int | None = None
    metered_usd: Decimal | None = None
    reported_usd: Decimal | None = None
    refusals: int = 0
    """Requests that the model, or a policy or filter of its provider, refused."""
    last_failure: CodetasteError | None = None
    """Why the last request of a CLI agent failed for good; None if it was answered."""
    own_shortfall: Shortfall | None = None
    """Why the run did not end well, where the finish reason does not say it."""
    log: str = ""
    """The path of its output or conversation in the run's folder."""
    started_at: str = field(default_factory=utc_now)
    finished_at: str = ""

    def add_usage(self, usage: Usage | None) -> None:
        """Add the tokens of one reply."""
        self.usage = None if usage is None or self.usage is None else self.usage + usage

    @property
    def shortfall(self) -> Shortfall | None:
        """Why the run did not end well; None if it did."""
        if self.finish_reason == FinishReason.SUCCESS:
            return None
        return self.own_shortfall or Shortfall(
            self.finish_reason.value, self.message, self.finish_reason.by_limit
        )

    def cost_mismatch_note(self) -> str:
        """Return a note if reported and metered cost differ by more than one per cent, "" otherwise."""
        if self.reported_usd is None or self.metered_usd is None:
            return ""
        if abs(self.reported_usd - self.metered_usd) <= _NOTABLE * self.metered_usd:
            return ""
        reported, metered = format_exact_usd(self.reported_usd), format_exact_usd(self.metered_usd)
        return f"the agent reports a cost of ${reported}; ${metered} was measured"

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        data: dict[str, Any] = {
            "finish_reason": self.finish_reason,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "tokens": usage_to_json(self.usage),
            "start_time": self.started_at,
            "finish_time": self.finished_at or utc_now(),
        }
        if self.log:
            data["log"] = self.log
        if self.message:
            data["message"] = self.message
        if self.refusals:
            data["refusals"] = self.refusals
        if self.exit_code is not None:
            data["exit_code"] = self.exit_code
        if self.metered_usd is not None:
            data["cost_usd"] = format_exact_usd(self.metered_usd)
        if self.reported_usd is not None:
            data["reported_cost_usd"] = format_exact_usd(self.reported_usd)
        if self.cost_mismatch_note():
            data["cost_mismatch"] = self.cost_mismatch_note()
        return data
