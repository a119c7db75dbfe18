"""The lines of the journal, format 2: one JSON object each, whose ``event`` names its kind.

Everything that writes, folds or shows lines uses these types. A change of a key or of its meaning needs a new
format number; a new kind of line or a new optional key does not, because readers skip what they do not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the types
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, get_args, get_type_hints

from pydantic import AfterValidator, ConfigDict, Field, Strict, TypeAdapter, ValidationError, with_config
from typing_extensions import TypedDict  # of Python 3.11, pydantic does not take its own

from codetaste.orchestration.shortfall import ShortfallRow  # noqa: TC001 - pydantic reads the types

MAX_AMOUNT = 10**15
"""No valid cost in dollars, number of tokens or time in seconds is larger."""
_MAX_DIGITS = 100
_DOLLARS = re.compile(r"[0-9]+(\.[0-9]+)?(E[-+]?[0-9]{1,3})?")
"""As ``str`` writes a decimal number; with more digits in the exponent it could be too long to print."""


def _check_dollars(text: str) -> str:
    if not (len(text) <= _MAX_DIGITS and _DOLLARS.fullmatch(text) and Decimal(text) <= MAX_AMOUNT):
        raise ValueError(f"{text[:40]!r} is not an amount of money from 0 to {MAX_AMOUNT:,}")
    return text


Dollars: TypeAlias = Annotated[str, AfterValidator(_check_dollars)]
Count: TypeAlias = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
Number: TypeAlias = Annotated[float, Field(ge=0, le=MAX_AMOUNT)]
LimitsRow: TypeAlias = Annotated[
    tuple[Dollars | None, Count | None, Number | None, Number | None], Strict(strict=False)
]
"""Limits of a node: dollars (text), tokens, wall seconds, working seconds; null is no limit."""
_Clock: TypeAlias = Annotated[tuple[list[str], Number, Number], Strict(strict=False)]


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
    capacity: Number


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
    nodes: list[_Clock]


class DrainLine(_Line):
    """The run is being stopped."""

    event: Literal["drain"]
    reason: str


class SessionFailedLine(_Line):
    """An error ended the session before all of its jobs had ended."""

    event: Literal["session_failed"]
    error: str


class JobLine(_JobLine):
    """A job was added; ``path`` leads to its budget."""

    event: Literal["job"]
    title: str
    lane: str
    resources: NotRequired[Mapping[str, Number]]
    needs: list[str]
    path: list[str]


class RerunLine(_JobLine):
    """What is recorded of the job was discarded."""

    event: Literal["rerun"]


class StartedLine(_JobLine):
    """An attempt has started."""

    event: Literal["started"]
    attempt: Count


class RetryLine(_JobLine):
    """An attempt has failed and another follows."""

    event: Literal["retry"]
    attempt: Count
    cause: str
    error: str
    delay_s: Number


class CallRetryLine(_JobLine):
    """A call of ``model`` has failed and is repeated."""

    event: Literal["call_retry"]
    model: str
    cause: str
    error: str
    delay_s: Number


class WaitStartedLine(_JobLine):
    """The job waits; see ``orchestration/wait.py``."""

    event: Literal["wait_started"]
    reason: str
    detail: str
    delay_s: Number | None


class WaitEndedLine(_JobLine):
    """The job has waited."""

    event: Literal["wait_ended"]
    reason: str
    detail: str
    waited_s: Number


class ResumedLine(_JobLine):
    """The job has the result of an earlier session."""

    event: Literal["resumed"]
    status: str


class EndedLine(_JobLine):
    """The job has ended.

    ``limits`` are those of its budget chain, if one of them ended it; ``reached`` are limits of its handler
    that cut its value. ``shortfall`` says why a job that is done did not end well. ``inputs``
    are hashes of what decides the result, by name.
    """

    event: Literal["ended"]
    fingerprint: str
    status: str
    value: NotRequired[Any]
    cause: NotRequired[str]
    error: NotRequired[str]
    traceback: NotRequired[str]
    limits: NotRequired[list[Any]]
    reached: NotRequired[dict[str, int]]
    shortfall: NotRequired[ShortfallRow]
    inputs: NotRequired[dict[str, str]]


class EffectLine(_JobLine):
    """The value of an effect."""

    event: Literal["effect"]
    fingerprint: str
    name: str
    value: Any


class ReservedLine(_JobLine):
    """Money was reserved for ``call``, which gives ``effect``."""

    event: Literal["reserved"]
    call: str
    fingerprint: str
    effect: str
    path: list[str]
    usd: Dollars
    tokens: Count
    note: NotRequired[Any]


class SettledLine(_Line):
    """The cost of a call and, unless it is null, the value of its effect; ``by`` names a command."""

    event: Literal["settled"]
    call: str
    usd: Dollars
    tokens: Count
    value: NotRequired[Any]
    by: NotRequired[str]


class ReleasedLine(_Line):
    """A call was not billed."""

    event: Literal["released"]
    call: str


class DisputedLine(_Line):
    """A call exceeded its reservation: what ``name`` stands for is not called again in this run."""

    event: Literal["disputed"]
    name: str
    call: str


class UnknownLine(_Line):
    """The cost of a call is unknown; it stays charged at its reservation, or at ``usd`` if that is less."""

    event: Literal["unknown"]
    call: str
    usd: NotRequired[Dollars]
    tokens: NotRequired[Count]


JournalLine: TypeAlias = (
    SessionLine
    | LimitsLine
    | LimitsAppliedLine
    | CapacityLine
    | PriceLine
    | NoteLine
    | ClocksLine
    | DrainLine
    | SessionFailedLine
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
    | DisputedLine
    | SettledLine
    | ReleasedLine
    | UnknownLine
)


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    """Return what checks the lines of each event."""
    kinds = get_args(JournalLine)
    strict = ConfigDict(strict=True, allow_inf_nan=False)
    return {
        get_args(get_type_hints(kind)["event"])[0]: TypeAdapter(with_config(strict)(kind)) for kind in kinds
    }


def line_problem(line: Mapping[str, Any]) -> str:
    """Return what is wrong with the values of ``line``, "" if nothing is; an unknown event may have any."""
    adapter = _adapters().get(line["event"])
    if adapter is None:
        return ""
    try:
        adapter.validate_python(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        key = ".".join(map(str, first["loc"]))
        return f"a damaged {line['event']!r} line: {key}: {first['msg'].removeprefix('Value error, ')}"
    return ""
