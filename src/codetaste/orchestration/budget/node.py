"""One node of the budget tree: its limits, its charges and its clock.

A call's money moves through the states of ``CallState``: it is in flight from its reservation until its cost
is known, or known to be unknown.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from codetaste.orchestration.budget.cost import BudgetLimits, BudgetSnapshot, Cost, PriorCharges

if TYPE_CHECKING:
    from codetaste.orchestration.budget.clock import Clock


class CallState(StrEnum):
    """State of a call that costs money, and of its reservation. Only SETTLED is final."""

    IN_FLIGHT = "in_flight"
    UNKNOWN = "unknown"
    RELEASED = "released"
    SETTLED = "settled"


class BudgetNode:
    """Limits and charges of a node and everything beneath it. ``chain`` leads from the root to the node."""

    chain: tuple[BudgetNode, ...]

    def __init__(
        self, path: tuple[str, ...], limits: BudgetLimits, clock: Clock, prior: PriorCharges
    ) -> None:
        self.path, self.limits, self.clock = path, limits, clock
        self.settled, self.unknown, self.reserved = prior.settled, prior.unknown, Cost()
        self.risk, self.calls_at_risk = Cost(), 0

    @property
    def spent(self) -> Cost:
        """Cost that counts against the limits for good: settled plus unknown."""
        return self.settled + self.unknown

    def move(self, granted: Cost, before: CallState, after: CallState, cost: Cost) -> None:
        """Move the charge of one call: ``granted`` was reserved for it, ``cost`` is charged if settled."""
        if before is CallState.IN_FLIGHT:
            self.reserved -= granted
        elif before is CallState.UNKNOWN:
            self.unknown -= granted
        if after is CallState.IN_FLIGHT:
            self.reserved += granted
        elif after is CallState.UNKNOWN:
            self.unknown += granted
        elif after is CallState.SETTLED:
            self.settled += cost

    def describe_unknown(self) -> str:
        """Return a message about the dollars that calls of unknown cost hold; "" if there are none."""
        usd = self.unknown.usd
        return f", with ${usd} held by calls of unknown cost (see codetaste settle)" if usd else ""

    def snapshot(self) -> BudgetSnapshot:
        """Return the charges of this node and everything beneath it, and its clocks."""
        wall_s = self.clock.wall_s
        waited_s = max(0.0, wall_s - self.clock.working_s)
        return BudgetSnapshot(
            self.path, self.settled, self.unknown, self.reserved, self.limits, wall_s, waited_s
        )


def format_path(path: tuple[str, ...]) -> str:
    """Format a node's path for messages: "infer/trial-1", or "the run" for the root."""
    return "/".join(path) or "the run"
