"""Events for the observers of a run: the live display, plain lines, tests.

Observers are plain callables, called immediately and in order. An observer that raises is logged and removed,
so that it cannot break the run. Data that must survive the process is in the journal, not here.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from decimal import Decimal

    from codetaste.errors import Cause
    from codetaste.orchestration.budget.cost import BudgetSnapshot
    from codetaste.orchestration.shortfall import Shortfall
    from codetaste.orchestration.wait import Wait

_log = logging.getLogger(__name__)


class Event:
    """Something that has happened in a run."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class JobQueued(Event):
    """A job was added; ``group`` names the jobs that are counted together."""

    key: str
    title: str
    lane: str
    needs: tuple[str, ...]
    group: str = ""


@dataclass(frozen=True, slots=True)
class JobStarted(Event):
    """An attempt has started; ``attempt`` counts from 1 over all sessions.

    ``time_left_s`` returns the seconds of work that the job has left, infinity without a limit.
    """

    key: str
    attempt: int
    time_left_s: Callable[[], float] = lambda: math.inf


@dataclass(frozen=True, slots=True)
class JobRetrying(Event):
    """An attempt failed and another follows in ``delay_s`` seconds."""

    key: str
    attempt: int
    cause: Cause
    error: str
    delay_s: float


@dataclass(frozen=True, slots=True)
class JobFinished(Event):
    """A job ended; ``status`` is a ``Status``. ``resumed``: the result is from an earlier session.

    ``shortfall`` says why a job that is done did not end well.
    """

    key: str
    status: str
    cause: Cause | None
    error: str
    resumed: bool
    cost: BudgetSnapshot
    shortfall: Shortfall | None = None


@dataclass(frozen=True, slots=True)
class WaitStarted(Event):
    """A job waits."""

    key: str
    wait: Wait


@dataclass(frozen=True, slots=True)
class WaitEnded(Event):
    """A job has waited ``waited_s`` seconds and continues."""

    key: str
    wait: Wait
    waited_s: float


@dataclass(frozen=True, slots=True)
class MoneyChanged(Event):
    """Job ``key`` reserved, settled or released money; snapshots of its own node and of the whole run.

    With the key "" the run's limits have changed.
    """

    key: str
    node: BudgetSnapshot
    root: BudgetSnapshot


@dataclass(frozen=True, slots=True)
class CallSent(Event):
    """A model call was sent; ``call`` names it uniquely in the run, ``model`` is the config's id."""

    key: str
    call: str
    model: str


@dataclass(frozen=True, slots=True)
class CallAnswered(Event):
    """A model has answered. ``usage`` counts tokens by kind; ``usd`` is None when the cost is unknown."""

    key: str
    call: str
    model: str
    duration_s: float
    usage: Mapping[str, int]
    usd: Decimal | None
    request_id: str


@dataclass(frozen=True, slots=True)
class CallFailed(Event):
    """A model gave no usable reply, or the caller went away."""

    key: str
    call: str
    model: str
    duration_s: float
    cause: Cause
    error: str


@dataclass(frozen=True, slots=True)
class CallRetrying(Event):
    """A call of ``model`` failed and is repeated in ``delay_s`` seconds."""

    key: str
    model: str
    cause: Cause
    error: str
    delay_s: float

    @property
    def text(self) -> str:
        """One line for humans."""
        return f"{self.model}: {self.error}; trying again in {self.delay_s:.1f} s"


@dataclass(frozen=True, slots=True)
class ToolCalled(Event):
    """A tool has answered a model; ``failed`` if the answer was an error. ``name`` is the effect's name."""

    key: str
    tool: str
    name: str
    duration_s: float
    failed: bool


@dataclass(frozen=True, slots=True)
class ToolRaised(Event):
    """A tool raised an exception that is a fault of the tool, not of the model."""

    key: str
    tool: str
    name: str
    traceback: str


@dataclass(frozen=True, slots=True)
class Note(Event):
    """A line of text for humans; ``key`` is empty when it concerns the whole run."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class Draining(Event):
    """The run is stopping: no job starts any more, and clean-up may take ``grace_s`` seconds."""

    grace_s: float
    reason: str


Observer: TypeAlias = "Callable[[Event], None]"


class FanOut:
    """Delivers every event to every observer."""

    def __init__(self, *observers: Observer) -> None:
        self._observers = list(observers)

    @property
    def has_observers(self) -> bool:
        """Whether there are observers; without any, events that are expensive to create can be skipped."""
        return bool(self._observers)

    def add(self, observer: Observer) -> None:
        """Deliver all further events to ``observer``."""
        self._observers.append(observer)

    def publish(self, event: Event) -> None:
        """Deliver ``event`` to every observer."""
        for observer in tuple(self._observers):
            try:
                observer(event)
            except Exception:  # noqa: BLE001  # an observer must not break the run
                _log.exception("observer %r raised and is removed", observer)
                self._observers.remove(observer)
