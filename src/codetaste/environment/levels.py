"""``Level``: how far the environment of an instance was proven to work."""

from __future__ import annotations

from enum import Enum
from functools import total_ordering


@total_ordering
class Level(Enum):
    """The levels in ascending order; each includes those before it."""

    NONE = "none"
    """Nothing was proven."""
    INSTALLS = "installs"
    """The two setup scripts end with success."""
    TESTS_START = "tests_start"
    """``run_tests`` prints a result."""
    GATES_PASS = "gates_pass"  # noqa: S105 - not one
    """All gates pass, on R and on R∘X*."""
    OFFLINE = "offline"
    """They pass without a network, too."""

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Level):
            return NotImplemented
        return _RANK[self] < _RANK[other]

    def __str__(self) -> str:
        """Return the name in records and tables."""
        return self.value

    @property
    def is_proven(self) -> bool:
        """Whether trials and test runs may use the environment."""
        return self >= Level.GATES_PASS


_RANK = {level: rank for rank, level in enumerate(Level)}
