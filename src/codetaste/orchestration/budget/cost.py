"""Value objects of the budget: costs, limits, and snapshots of one node."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import TypeAlias

_NO_USD = Decimal(0)
_SMALLEST = Decimal("0.0001")


def format_dollars(amount: Decimal, rounding: str = ROUND_HALF_EVEN) -> str:
    """Format an amount, rounded to a hundredth of a cent, without trailing zeros: "$0.031"."""
    short = amount.quantize(_SMALLEST, rounding=rounding) if amount.is_finite() else amount
    return f"${short.normalize():f}"


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars and tokens. ``a <= b`` holds when it holds for both fields, so it is a partial order."""

    usd: Decimal = _NO_USD
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.usd + other.usd, self.tokens + other.tokens)

    def __sub__(self, other: Cost) -> Cost:
        return Cost(self.usd - other.usd, self.tokens - other.tokens)

    def __le__(self, other: Cost) -> bool:
        return self.usd <= other.usd and self.tokens <= other.tokens

    def __ge__(self, other: Cost) -> bool:
        return other <= self

    def check(self) -> Cost:
        """Return this cost if it is valid.

        Raises:
            TypeError: an amount is a float, which is never exact.
            ValueError: an amount is negative or not finite.
        """
        if not (isinstance(self.usd, Decimal) and isinstance(self.tokens, int)):
            raise TypeError(f"{self}: dollars must be Decimal and tokens int; other types are not exact")
        if not self.usd.is_finite() or self.usd < 0 or self.tokens < 0:
            raise ValueError(f"{self}: an amount of money must be finite and not negative")
        return self


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """Spending limits of a node; ``None`` is no limit. Working seconds are wall seconds minus waiting."""

    usd: Decimal | None = None
    tokens: int | None = None
    wall_s: float | None = None
    working_s: float | None = None

    def check(self) -> BudgetLimits:
        """Return these limits if they are valid.

        Raises:
            ValueError: a limit is negative or not finite.
        """
        for name in ("usd", "tokens", "wall_s", "working_s"):
            limit = getattr(self, name)
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise ValueError(f"{name} {limit}: a limit must be finite and not negative")
        return self


@dataclass(frozen=True, slots=True)
class NamedLimits:
    """The name of a budget node and the limits that it is created with."""

    name: str
    limits: BudgetLimits = field(default_factory=BudgetLimits)


BudgetPath: TypeAlias = tuple[NamedLimits, ...]
"""The nodes from below the root to a node, as data: another process creates the same nodes from it."""


@dataclass(frozen=True, slots=True)
class PriorCharges:
    """Charges of earlier sessions at exactly one node (not beneath it), and the node's two clocks."""

    settled: Cost = field(default_factory=Cost)
    unknown: Cost = field(default_factory=Cost)
    wall_s: float = 0.0
    working_s: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """State of a node at one moment, including everything beneath it.

    ``unknown`` is charged at its reservation until the provider's own record is known; ``reserved`` is in
    flight. ``wall_s`` counts while a job of the node is under way, ``waited_s`` is the part of it during
    which all of them waited.
    """

    path: tuple[str, ...] = ()
    settled: Cost = field(default_factory=Cost)
    unknown: Cost = field(default_factory=Cost)
    reserved: Cost = field(default_factory=Cost)
    limits: BudgetLimits = field(default_factory=BudgetLimits)
    wall_s: float = 0.0
    waited_s: float = 0.0

    @property
    def spent(self) -> Cost:
        """Cost that counts against the limits for good: settled plus unknown."""
        return self.settled + self.unknown
