"""What OpenAI's protocols, and servers that speak them, say when a call fails: Responses and Chat alike."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from codetaste.errors import ModelRefused, ModelUnavailable
from codetaste.llm.wire.http import error_for_status, one_line, retry_after_s

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.errors import ModelError

_QUOTA = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "usage_limit_reached", "usage_not_included"}
)
"""What waiting does not mend, although it comes as 429."""
_OVERLOADED = frozenset({"server_is_overloaded", "slow_down", "overloaded_error", "overloaded"})
_STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "data_residency_mismatch": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
}
_FOR_EVER = re.compile(r"invalid_|image_|unsupported_|.*_policy(_violation)?$")
"""Codes of what will not go better another time."""
_HINTS = {
    "context_length_exceeded": "the conversation is too long for the model",
    "exceed_context_size_error": "the conversation is too long for the model",
    "include": "the model has no reasoning to give back: set options.include = []",
    "max_tokens": 'the server wants the other name: set options.output_cap = "max_completion_tokens"',
    "max_completion_tokens": 'the server wants the other name: set options.output_cap = "max_tokens"',
}
"""By code, by kind or by the parameter at fault."""
_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_TRY_AGAIN = re.compile(rf"try again in ((?:{_DURATION.pattern})+)", re.IGNORECASE)
_LONGEST_WAIT_S = 3600.0
_TOO_MANY = 429


@dataclass(frozen=True, slots=True)
class Failure:
    """What a server said of a failure: its words, and what it calls the cause."""

    said: str
    code: str = ""
    kind: str = ""
    param: str = ""
    status: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the cause is called, the most exact name first."""
        return tuple(name for name in (self.code, self.kind) if name)


def failure_of(body: object) -> Failure:
    """Read a failure in any of the shapes that servers give it: ``{"error": {…}}``, flat, or bare text."""
    error = _part(body, "error") or body
    if not isinstance(error, dict):
        text = error if isinstance(error, str) else "" if error is None else str(error)
        return Failure("an HTML page" if "<html" in text.lower() else text)
    said = next((error[name] for name in ("message", "detail", "error") if error.get(name)), "")
    code = error.get("code")
    status = code if type(code) is int and 400 <= code < 600 else None  # noqa: PLR2004 - HTTP's failures
    kind = error.get("type")
    return Failure(
        said if isinstance(said, str) else str(said),
        code=code if isinstance(code, str) else "",
        # An event's own type is no cause.
        kind=kind if isinstance(kind, str) and kind != "error" else "",
        param=str(error.get("param") or ""),
        status=status,
    )


def error_from(
    status: int, body: object, headers: Mapping[str, str], *, now: datetime | None = None
) -> ModelError:
    """Return the error for a response that is no success.

    Args:
        status: of HTTP.
        body: parsed JSON, or text.
        headers: of the response, names in lower case.
        now: for a Retry-After that is a date.
    """
    failure = failure_of(body)
    wait_s = retry_after_s(headers, now=now or datetime.now(UTC))
    if wait_s is None and status == _TOO_MANY:
        wait_s = _reset_s(headers) or _told_s(failure.said)
    return _error(status, failure, wait_s)


def error_in_stream(body: object, *, accepted: bool, started: bool) -> ModelError:
    """Return the error for a failure that came with status 200, in a stream or instead of a reply.

    Args:
        body: the event, or the whole answer.
        accepted: the provider had said that it works on a reply, and so may bill it.
        started: some of the reply had come.
    """
    failure = failure_of(body)
    error = _error(_status_of(failure), failure, _told_s(failure.said))
    if started and isinstance(error, ModelRefused) and not _QUOTA & {*failure.names}:
        return ModelUnavailable(f"the reply broke off: {error}")
    if accepted:
        error.unbilled = False
    return error


def _error(status: int, failure: Failure, wait_s: float | None) -> ModelError:
    named = next((name for name in failure.names if name not in failure.said), "")
    said = one_line(f"{named}: {failure.said}" if named and failure.said else named or failure.said)
    if _QUOTA & {*failure.names}:
        return ModelRefused(
            f"HTTP {status}: {said} (the account's quota is used up; waiting does not mend it)"
        )
    if _OVERLOADED & {*failure.names} and status != _TOO_MANY:
        return ModelUnavailable(
            f"HTTP {status}: {said}", unbilled=True, overloaded=True, retry_after_s=wait_s
        )
    error = error_for_status(status, said, wait_s=wait_s)
    hint = next((_HINTS[name] for name in (*failure.names, failure.param) if name in _HINTS), None)
    return (
        ModelRefused(f"HTTP {status}: {said} ({hint})") if hint and isinstance(error, ModelRefused) else error
    )


def _status_of(failure: Failure) -> int:
    """Return the status that a failure in a stream would have had as a response."""
    if failure.status is not None:
        return failure.status
    known = next((_STATUS[name] for name in failure.names if name in _STATUS), None)
    if known is not None:
        return known
    if _QUOTA & {*failure.names}:
        return _TOO_MANY
    return 400 if any(_FOR_EVER.match(name) for name in failure.names) else 500


def _reset_s(headers: Mapping[str, str]) -> float | None:
    """Return when the limits that are used up are renewed: ``x-ratelimit-reset-*``, in seconds."""
    waits = [
        wait_s
        for name in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0"
        and (wait_s := _seconds(headers.get(f"x-ratelimit-reset-{name}", ""))) is not None
    ]
    return max(waits, default=None)


def _told_s(said: str) -> float | None:
    """Return the wait that stands in a message: "Please try again in 1.2s"."""
    found = _TRY_AGAIN.search(said)
    return None if found is None else _seconds(found.group(1))


def _seconds(text: str) -> float | None:
    """Read a duration such as "6m0s", "20ms" or "1.2s"; nobody is made to wait for longer than an hour."""
    parts = _DURATION.findall(text[:100])
    if not parts:
        return None
    return min(sum(float(count) * _UNIT_S[unit] for count, unit in parts), _LONGEST_WAIT_S)


def _part(value: object, name: str) -> Any:  # noqa: ANN401 - JSON data
    return value.get(name) if isinstance(value, dict) else None
