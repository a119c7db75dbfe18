"""The lines of the journal, format 2: one JSON object each, whose ``event`` names its kind.

Everything that writes, folds or shows lines uses these types. A change of a key or of its meaning needs a new
format number; a new kind of line or a new optional key does not, because readers skip what they do not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypeAlias, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.orchestration.journal.journal import Json

LimitsRow: TypeAlias = "list[Json]"
"""Limits of a node: dollars (text), tokens, wall seconds, working seconds; null is no limit."""


class _Line(TypedDict):
    t: NotRequired[float]
    """When the line was written, in seconds of the epoch."""


class _JobLine(_Line):
    key: str


class SessionLine(_Line):
    """A process has opened the run."""

    event: Literal["session"]
    pid: int
    host: str
    limits: LimitsRow


class LimitsLine(_Line):
    """The limits of the whole run were changed."""

    event: Literal["limits"]
    limits: LimitsRow


class LimitsAppliedLine(_Line):
    """All limits in force, by config key."""

    event: Literal["limits_applied"]
    limits: Mapping[str, Any]


class CapacityLine(_Line):
    """The capacity of a resource: "sandbox", "cpu", "model ID"."""

    event: Literal["capacity"]
    resource: str
    capacity: float


class PriceLine(_Line):
    """The price of a model, null if unknown, and where it is from."""

    event: Literal["price"]
    model: str
    price: Mapping[str, Any] | None
    source: str


class NoteLine(_JobLine):
    """A line of text for humans; ``key`` is "" when it concerns the whole run."""

    event: Literal["note"]
    text: str


class ClocksLine(_Line):
    """Clocks that have advanced: path, wall seconds and working seconds of each node."""

    event: Literal["clocks"]
    nodes: list[tuple[list[str], float, float]]


class DrainLine(_Line):
    """The run is being stopped."""

    event: Literal["drain"]
    reason: str


class JobLine(_JobLine):
    """A job was added; ``path`` leads to its budget."""

    event: Literal["job"]
    title: str
    lane: str
    resources: NotRequired[Mapping[str, float]]
    needs: list[str]
    path: list[str]


class RerunLine(_JobLine):
    """What is recorded of the job was discarded."""

    event: Literal["rerun"]


class StartedLine(_JobLine):
    """An attempt has started."""

    event: Literal["started"]
    attempt: int


class RetryLine(_JobLine):
    """An attempt has failed and another follows."""

    event: Literal["retry"]
    attempt: int
    cause: str
    error: str
    delay_s: float


class CallRetryLine(_JobLine):
    """A call of ``model`` has failed and is repeated."""

    event: Literal["call_retry"]
    model: str
    cause: str
    error: str
    delay_s: float


class WaitStartedLine(_JobLine):
    """The job waits; see ``orchestration/wait.py``."""

    event: Literal["wait_started"]
    reason: str
    detail: str
    delay_s: float | None


class WaitEndedLine(_JobLine):
    """The job has waited."""

    event: Literal["wait_ended"]
    reason: str
    detail: str
    waited_s: float


class ResumedLine(_JobLine):
    """The job has the result of an earlier session."""

    event: Literal["resumed"]
    status: str


class EndedLine(_JobLine):
    """The job has ended; ``limits`` are those of its budget chain, if one of them ended it."""

    event: Literal["ended"]
    fingerprint: str
    status: str
    value: NotRequired[Json]
    cause: NotRequired[str]
    error: NotRequired[str]
    traceback: NotRequired[str]
    limits: NotRequired[list[Json]]


class EffectLine(_JobLine):
    """The value of an effect."""

    event: Literal["effect"]
    fingerprint: str
    name: str
    value: Json


class ReservedLine(_JobLine):
    """Money was reserved for ``call``, which gives ``effect``."""

    event: Literal["reserved"]
    call: str
    fingerprint: str
    effect: str
    path: list[str]
    usd: str
    tokens: int
    note: NotRequired[Json]


class SettledLine(_Line):
    """The cost of a call and, unless it is null, the value of its effect; ``by`` names a command."""

    event: Literal["settled"]
    call: str
    usd: str
    tokens: int
    value: NotRequired[Json]
    by: NotRequired[str]


class ReleasedLine(_Line):
    """A call was not billed."""

    event: Literal["released"]
    call: str


class UnknownLine(_Line):
    """The cost of a call is unknown; it stays charged at its reservation."""

    event: Literal["unknown"]
    call: str


JournalLine: TypeAlias = (
    SessionLine
    | LimitsLine
    | LimitsAppliedLine
    | CapacityLine
    | PriceLine
    | NoteLine
    | ClocksLine
    | DrainLine
    | JobLine
    | RerunLine
    | StartedLine
    | RetryLine
    | CallRetryLine
    | WaitStartedLine
    | WaitEndedLine
    | ResumedLine
    | EndedLine
    | EffectLine
    | ReservedLine
    | SettledLine
    | ReleasedLine
    | UnknownLine
)
