"""Fair queue: fair between lanes, first come first served within a lane, within given capacities.

The lane with the fewest running items goes first, then the lane served longest ago. The head of a lane that
does not fit claims what it needs, so that later lanes cannot take it; a head that was passed over too often
goes first. A big job therefore never starves behind small ones.

A capacity can change while items run. Running items keep what they have, even beyond the new capacity. An
item that needs more than the capacity starts when nothing else uses the resource. A resource of capacity 0
is neither given out nor claimed.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

T = TypeVar("T")
_MAX_PASSES = 32  # starts of smaller items that may pass the head of a lane
_ROUNDING = 1e-9


@dataclass(slots=True)
class _Lane(Generic[T]):
    waiting: deque[tuple[T, Mapping[str, float]]] = field(default_factory=deque)
    running: int = 0
    served: int = 0
    passed: int = 0


class FairQueue(Generic[T]):
    """Lanes of waiting items, with the capacity and the use of each resource."""

    def __init__(self, capacities: Mapping[str, float]) -> None:
        self.capacities = dict(capacities)
        self._taken = dict.fromkeys(capacities, 0.0)
        self._lanes: dict[str, _Lane[T]] = {}
        self._busy: dict[str, None] = {}
        self._turn = 0

    def push(self, item: T, lane: str, resources: Mapping[str, float]) -> None:
        """Append ``item`` to ``lane``; it needs ``resources``, each known and within capacity."""
        self._lanes.setdefault(lane, _Lane()).waiting.append((item, resources))
        self._busy[lane] = None

    def push_first(self, item: T, lane: str, resources: Mapping[str, float]) -> None:
        """Put ``item`` at the head of ``lane``: it had its turn already."""
        self._lanes.setdefault(lane, _Lane()).waiting.appendleft((item, resources))
        self._busy[lane] = None

    def pop(self) -> T | None:
        """Take the resources of the next item that may start and return it; None when nothing fits now."""
        claimed: dict[str, float] = {}
        order = sorted(self._busy, key=self._rank) if len(self._busy) > 1 else self._busy
        for name in order:
            lane = self._lanes[name]
            item, resources = lane.waiting[0]
            if self._fits(resources, claimed):
                self._start(name, lane, resources)
                return item
            if all(self.capacities[resource] or not amount for resource, amount in resources.items()):
                for resource, amount in resources.items():
                    claimed[resource] = claimed.get(resource, 0.0) + amount
        return None

    def release(self, lane: str, resources: Mapping[str, float]) -> None:
        """Free the ``resources`` of an item of ``lane``."""
        self._lanes[lane].running -= 1
        for resource, amount in resources.items():
            self._taken[resource] -= amount

    def resize(self, resource: str, capacity: float) -> None:
        """Set the capacity of ``resource``; at 0 no item that needs it starts."""
        self.capacities[resource] = capacity

    def clear(self) -> list[T]:
        """Remove and return all waiting items."""
        waiting = [item for name in self._busy for item, _ in self._lanes[name].waiting]
        for name in self._busy:
            self._lanes[name].waiting.clear()
        self._busy.clear()
        return waiting

    def _rank(self, name: str) -> tuple[bool, int, int]:
        lane = self._lanes[name]
        return (lane.passed < _MAX_PASSES, lane.running, lane.served)

    def _fits(self, resources: Mapping[str, float], claimed: Mapping[str, float]) -> bool:
        return all(
            not amount or self._room(resource, amount, claimed.get(resource, 0.0))
            for resource, amount in resources.items()
        )

    def _room(self, resource: str, amount: float, claimed: float) -> bool:
        capacity = self.capacities[resource]
        return (
            capacity > 0 and min(amount, capacity) <= capacity - self._taken[resource] - claimed + _ROUNDING
        )

    def _too_big(self, demand: Mapping[str, float], started: Mapping[str, float]) -> bool:
        """Whether ``demand`` does not fit now because it is bigger than what was ``started`` instead."""
        return any(
            amount > started.get(resource, 0.0) and amount and not self._room(resource, amount, 0.0)
            for resource, amount in demand.items()
        )

    def _start(self, name: str, lane: _Lane[T], resources: Mapping[str, float]) -> None:
        lane.waiting.popleft()
        if not lane.waiting:
            del self._busy[name]
        for resource, amount in resources.items():
            self._taken[resource] += amount
        for other in self._busy:
            if other != name and self._too_big(self._lanes[other].waiting[0][1], resources):
                self._lanes[other].passed += 1
        self._turn += 1
        lane.running, lane.served, lane.passed = lane.running + 1, self._turn, 0
