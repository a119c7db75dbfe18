"""Bounded, shielded clean-up after a cancellation; a second stop request shortens it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Iterator


class Grace:
    """Time limit of every clean-up of a run, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._scopes: set[anyio.CancelScope] = set()

    @contextmanager
    def scope(self) -> Iterator[anyio.CancelScope]:
        """Shield the clean-up inside from cancellation until the grace period ends."""
        with anyio.CancelScope(shield=True, deadline=anyio.current_time() + self.seconds) as scope:
            self._scopes.add(scope)
            try:
                yield scope
            finally:
                self._scopes.discard(scope)

    def shorten(self, seconds: float) -> None:
        """Limit every clean-up, those under way included, to ``seconds`` from now."""
        self.seconds = min(self.seconds, seconds)
        ends = anyio.current_time() + self.seconds
        for scope in self._scopes:
            scope.deadline = min(scope.deadline, ends)
