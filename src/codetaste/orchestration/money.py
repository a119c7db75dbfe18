"""Values of the budget: what something costs, what may be spent, and what one node has spent so far."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal

_NOTHING = Decimal(0)
_SMALLEST = Decimal("0.0001")


def dollars(amount: Decimal, rounding: str = ROUND_HALF_EVEN) -> str:
    """Say an amount in no more digits than it has to the hundredth of a cent: "$0.031"."""
    short = amount.quantize(_SMALLEST, rounding=rounding) if amount.is_finite() else amount
    return f"${short.normalize():f}"


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars and tokens. ``a <= b`` holds when it holds for both fields, so it is a partial order."""

    usd: Decimal = _NOTHING
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
        """Return this cost if it can be charged.

        Raises:
            ValueError: an amount is negative, not finite, or a float, which is never exact.
        """
        if not (isinstance(self.usd, Decimal) and isinstance(self.tokens, int)):
            raise TypeError(f"{self}: dollars are Decimal and tokens int, anything else is not exact")
        if not self.usd.is_finite() or self.usd < 0 or self.tokens < 0:
            raise ValueError(f"{self}: an amount of money must be finite and not negative")
        return self


@dataclass(frozen=True, slots=True)
class Limits:
    """What a node may spend; ``None`` is no limit. Working seconds are wall seconds minus waiting."""

    usd: Decimal | None = None
    tokens: int | None = None
    wall_s: float | None = None
    working_s: float | None = None

    def check(self) -> Limits:
        """Return these limits if they can be kept.

        Raises:
            ValueError: one of them is negative or not finite.
        """
        for name in ("usd", "tokens", "wall_s", "working_s"):
            limit = getattr(self, name)
            if limit is not None and not (math.isfinite(limit) and limit >= 0):
                raise ValueError(f"{name} {limit}: a limit must be finite and not negative")
        return self


@dataclass(frozen=True, slots=True)
class Prior:
    """What earlier sessions of the run charged at exactly one node (not beneath it), and its two clocks."""

    settled: Cost = field(default_factory=Cost)
    unknown: Cost = field(default_factory=Cost)
    wall_s: float = 0.0
    working_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A node at one moment, everything beneath it included.

    ``unknown`` is charged at its reservation until the provider's own record is known; ``reserved`` is in
    flight. ``wall_s`` counts while a job is under way in the node, ``waited_s`` is the part of it in which
    every one of them waited.
    """

    path: tuple[str, ...] = ()
    settled: Cost = field(default_factory=Cost)
    unknown: Cost = field(default_factory=Cost)
    reserved: Cost = field(default_factory=Cost)
    limits: Limits = field(default_factory=Limits)
    wall_s: float = 0.0
    waited_s: float = 0.0

    @property
    def spent(self) -> Cost:
        """What counts against the limits for good: settled and unknown."""
        return self.settled + self.unknown
