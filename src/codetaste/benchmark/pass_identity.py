"""What identifies a pass of rule discovery within a run, and the key of its job."""

from __future__ import annotations

from typing import NamedTuple

from codetaste.rules.registration import Direction

_FLOW = "discover"
PASS_PREFIX = f"{_FLOW}/"
"""With which the key of each pass begins."""


class PassIdentity(NamedTuple):
    """One model and one instance (by their ids), and the direction of the rules."""

    model: str
    instance: str
    direction: Direction

    @property
    def key(self) -> str:
        """The key of its job, which ``pass_of_job`` reads."""
        return f"{_FLOW}/{self.model}/{self.instance}/{self.direction.value}"


def pass_of_job(key: str) -> PassIdentity | None:
    """Return the pass whose job has this key; None if it is the key of another job."""
    flow, *names = key.split("/")
    if flow != _FLOW or len(names) != len(PassIdentity._fields) or names[-1] not in set(Direction):
        return None
    model, instance, direction = names
    return PassIdentity(model, instance, Direction(direction))
