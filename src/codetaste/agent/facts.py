"""Tool state that is journalled, so that it survives the process.

A tool has no state of its own: it adds facts and reads the facts of earlier calls. The loop journals the
facts of a call together with its answer, so a resumed loop restores them without calling the tool. The facts
of a failed call are discarded.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(slots=True)
class Facts:
    """An ordered log of (kind, fact); a fact is JSON data."""

    _permanent: list[tuple[str, Any]] = field(default_factory=list)
    _pending: list[tuple[str, Any]] = field(default_factory=list)

    def add(self, kind: str, fact: Any) -> None:  # noqa: ANN401 - JSON data
        """Add a fact; it is visible at once, and permanent when the tool call succeeds.

        Raises:
            TypeError: ``fact`` is not JSON data.
            ValueError: it contains a number that is not finite.
        """
        json.dumps(fact, allow_nan=False)
        self._pending.append((kind, fact))

    def of_kind(self, kind: str) -> list[Any]:
        """Return all facts of one kind, oldest first."""
        return [fact for name, fact in (*self._permanent, *self._pending) if name == kind]

    def take_pending(self) -> list[list[Any]]:
        """Make the facts added since the last call permanent, and return them as JSON data."""
        self._permanent.extend(self._pending)
        return self.drop_pending()

    def drop_pending(self) -> list[list[Any]]:
        """Discard the facts added since the last call, and return them."""
        dropped = [[kind, fact] for kind, fact in self._pending]
        self._pending.clear()
        return dropped

    def restore(self, taken: list[list[Any]]) -> None:
        """Restore facts that an earlier process journalled."""
        self._permanent.extend((kind, fact) for kind, fact in taken)


class HasFacts(Protocol):
    """The part of an agent's context that the loop needs; tools may need more."""

    @property
    def facts(self) -> Facts:
        """The facts that the tools have added."""
        ...
