"""How jobs ended, as users see it: a mark, a name to count by, and the reason in one line.

A job ended well if it is done and no limit, fault or mistake of its agent ended it. ``docs/guide/resume.md``
lists every ending.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from codetaste.errors import Cause
from codetaste.orchestration.job import Status

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.orchestration.job import Outcome
    from codetaste.orchestration.journal.history import JobState
    from codetaste.orchestration.shortfall import Shortfall

_STATUSES = {status.value: status for status in Status}
ENDED_STATES = frozenset(_STATUSES)
"""The states of jobs that have ended."""


class Mark(Enum):
    """What a job's line begins with, and its colour on a terminal."""

    OK = ("ok", "green")
    CUT = ("cut", "yellow")
    """A limit ended it; what it had by then is its result."""
    BAD = ("bad", "red")
    """It has a result, but ended by a fault or a mistake."""
    NONE = ("--", "red")
    """It has no result."""

    @property
    def text(self) -> str:
        """The mark."""
        return self.value[0]

    @property
    def colour(self) -> str:
        """The name of its colour."""
        return self.value[1]


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; ``reason`` is one line, "" if it ended well or nothing more is known."""

    mark: Mark
    name: str
    reason: str = ""

    @property
    def well(self) -> bool:
        """Whether the job ended well."""
        return self.mark is Mark.OK

    def __str__(self) -> str:
        """Return name and reason."""
        return f"{self.name}: {self.reason}" if self.reason else self.name


def ending_of(status: Status, shortfall: Shortfall | None, error: str) -> Ending:
    """Return the ending of a job; an ending by a limit counts as one with a result."""
    if status is Status.DONE and shortfall is not None:
        mark = Mark.CUT if shortfall.by_limit else Mark.BAD
        return Ending(mark, shortfall.name.replace("_", " "), shortfall.text)
    mark = Mark.OK if status is Status.DONE else Mark.CUT if status.by_limit else Mark.NONE
    return Ending(mark, status.value.replace("_", " "), error)


def ending_in_state(state: JobState, shortfall: Shortfall | None, error: str) -> Ending | None:
    """Return the ending of a job in ``state``; None if it has not ended."""
    status = _STATUSES.get(state)
    return None if status is None else ending_of(status, shortfall, error)


def ending_of_outcome(outcome: Outcome) -> Ending:
    """Return the ending of a job of this session."""
    why = "unavailable: " if outcome.cause is Cause.UNAVAILABLE else ""
    ending = ending_of(outcome.status, outcome.shortfall, f"{why}{outcome.error}")
    return ending if outcome.usable else Ending(Mark.NONE, ending.name, ending.reason)


def count_endings(endings: Iterable[Ending]) -> dict[str, int]:
    """Count endings by name: those that ended well as "ok" first, then the most frequent."""
    counts = Counter("ok" if each.well else each.name for each in endings)
    return dict(sorted(counts.items(), key=lambda item: (item[0] != "ok", -item[1], item[0])))


def format_endings(counts: dict[str, int]) -> str:
    """Format counts: "9 ok, 2 execution error"."""
    return ", ".join(f"{count} {name}" for name, count in counts.items())
