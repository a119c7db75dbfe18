"""What an agent's tools have established so far, in a form that outlives the process.

A tool keeps no state of its own. It adds facts, and reads the facts of earlier calls; the loop journals the
facts of a call together with its answer, so that a resumed conversation has them again without calling the
tool. The facts of a call that failed never happened.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(slots=True)
class Facts:
    """An ordered log of (kind, fact); a fact is plain JSON data."""

    _settled: list[tuple[str, Any]] = field(default_factory=list)
    _pending: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, kind: str, fact: Any) -> None:  # noqa: ANN401 - JSON data
        """Add a fact; it counts at once, and for good when the tool call succeeds.

        Raises:
            TypeError: it is not JSON data; ValueError: it holds a number that is not finite.
        """
        json.dumps(fact, allow_nan=False)
        self._pending.append((kind, fact))

    def of(self, kind: str) -> list[Any]:
        """All facts of one kind, oldest first."""
        return [fact for name, fact in (*self._settled, *self._pending) if name == kind]

    def take_pending(self) -> list[list[Any]]:
        """Settle what was added since the last call, and return it as JSON data."""
        taken = [[kind, fact] for kind, fact in self._pending]
        self._settled.extend(self._pending)
        self._pending.clear()
        return taken

    def drop_pending(self) -> list[list[Any]]:
        """Forget what was added since the last call, and return it: that call failed, or is no news."""
        dropped = [[kind, fact] for kind, fact in self._pending]
        self._pending.clear()
        return dropped

    def restore(self, taken: list[list[Any]]) -> None:
        """Put back what an earlier process settled."""
        self._settled.extend((kind, fact) for kind, fact in taken)


class HasFacts(Protocol):
    """What the loop asks of an agent's context; the tools ask for more."""

    @property
    def facts(self) -> Facts:
        """What the tools have established."""
        ...
