"""What OpenAI's protocols, Responses and Chat Completions, share: headers, errors and usage.

Compatible servers use other forms of errors and of usage; all known forms are decoded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from codetaste.core.text import one_line
from codetaste.errors import ModelRefused, ModelSetupError, ModelUnavailable
from codetaste.llm.messages import Usage
from codetaste.llm.wire.common.error_codes import ErrorCode, ErrorKind
from codetaste.llm.wire.common.http import error_for_status, member, retry_after_s, text_of_error, too_long
from codetaste.llm.wire.common.usage import count, largest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.errors import ModelError
    from codetaste.llm.messages import Request


_STOP_CODE = "invalid_prompt"
"""A code in a stream at which the pinned Codex does not retry."""

ERROR_CODES = {
    ErrorKind.BUDGET: ErrorCode(402, "insufficient_quota", "insufficient_quota"),
    ErrorKind.RATE_LIMIT: ErrorCode(429, "rate_limit_error", "rate_limit_exceeded"),
    ErrorKind.NOT_ALLOWED: ErrorCode(403, "permission_error", _STOP_CODE),
    ErrorKind.BAD_TOKEN: ErrorCode(403, "authentication_error", "invalid_api_key"),
    ErrorKind.BAD_REQUEST: ErrorCode(400, "invalid_request_error", _STOP_CODE),
    ErrorKind.TOO_LARGE: ErrorCode(413, "invalid_request_error", "context_length_exceeded"),
    ErrorKind.UNAVAILABLE: ErrorCode(503, "server_error", "server_error"),
    ErrorKind.GIVEN_UP: ErrorCode(403, "permission_error", _STOP_CODE),
}
"""The errors that the gateway reports; Responses has other statuses for them."""

_QUOTA = frozenset(
    {
        *("insufficient_quota", "billing_hard_limit_reached", "usage_limit_reached", "usage_not_included"),
        *("exceeded_current_quota_error", "insufficient_balance"),
    }
)
"""Codes that waiting does not resolve, although their status is 429."""

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

_PERMANENT = re.compile(r"invalid_|image_|unsupported_|.*_policy(_violation)?$")
"""Codes of errors that a retry does not resolve."""

_TOO_LONG = frozenset({"context_length_exceeded", "exceed_context_size_error"})

_HINTS = {
    "include": "the model has no reasoning to return: set options.include = []",
    "max_tokens": 'the server expects the other name: set options.output_cap = "max_completion_tokens"',
    "max_completion_tokens": 'the server expects the other name: set options.output_cap = "max_tokens"',
}
"""By code, type or invalid parameter."""

_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?(ms|milli|h|m|s)")

_UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001, "milli": 0.001}

_TRY_AGAIN = re.compile(rf"(?:try again|retry) (?:in|after) ((?:{_DURATION.pattern})+)", re.IGNORECASE)

_LONGEST_WAIT_S = 3600.0

_TOO_MANY = 429


def key_headers(key: str) -> dict[str, str]:
    """Return the header with an API key; none without a key."""
    return {"authorization": f"Bearer {key}"} if key else {}


def request_headers(_request: Request) -> dict[str, str]:
    """Return no headers: a request is only its body."""
    return {}


def error_body(error: ErrorCode, message: str) -> dict[str, Any]:
    """Return the body of an error response."""
    return {"error": {"message": message, "type": error.kind, "param": None, "code": error.code}}


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The error in a response: its message, the names of its cause, and the requested wait.

    ``own`` is whether its form is that of the protocol, which a proxy's answer has not.
    """

    message: str
    code: str = ""
    kind: str = ""
    param: str = ""
    status: int | None = None
    wait_s: float | None = None
    own: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the cause, the most exact one first."""
        return tuple(name for name in (self.code, self.kind) if name)


def parse_error_body(body: object) -> ErrorBody:
    """Decode an error in any form that servers use: ``{"error": {…}}``, a list of it, flat, or plain text."""
    if isinstance(body, list) and body:
        body = body[0]
    error = member(body, "error") or body
    if not isinstance(error, dict):
        return ErrorBody(text := text_of_error(error), wait_s=_wait_in_message_s(text))
    message = next((error[name] for name in ("message", "detail", "error") if error.get(name)), "")
    message = message if isinstance(message, str) else str(message)
    code, kind, details = error.get("code"), error.get("type"), error.get("details")
    number = count(code) or 0
    delays = [member(each, "retryDelay") for each in (details if isinstance(details, list) else ())]
    wait_s = next((_seconds(delay) for delay in delays if isinstance(delay, str)), None)
    return ErrorBody(
        message if message or code or kind else text_of_error(error),
        code=code if isinstance(code, str) else "",
        # "error" is the type of the event, not a cause.
        kind=kind if isinstance(kind, str) and kind != "error" else "",
        param=str(error.get("param") or ""),
        status=number if 400 <= number < 600 else None,  # noqa: PLR2004 - error statuses
        wait_s=wait_s or _wait_in_message_s(message),
        # vLLM's errors are flat, as events of Responses are.
        own=error is not body or "error" in (kind, error.get("object")),
    )


def error_from(
    status: int, body: object, headers: Mapping[str, str], *, now: datetime | None = None
) -> ModelError:
    """Return the error for a response with an error status."""
    failure = parse_error_body(body)
    wait_s = retry_after_s(headers, now=now or datetime.now(UTC))
    if wait_s is None and status == _TOO_MANY:
        wait_s = _reset_s(headers)
    return _error(status, failure, failure.wait_s if wait_s is None else wait_s)


def error_in_stream(body: object, *, accepted: bool, started: bool) -> ModelError:
    """Return the error for an error with status 200, in a stream or instead of a reply.

    Args:
        body: the event, or the whole response.
        accepted: whether the provider had accepted the request, so that it may bill it.
        started: whether a part of the reply had arrived.
    """
    failure = parse_error_body(body)
    error = _error(_status_of(failure), failure, failure.wait_s)
    if started and isinstance(error, ModelRefused) and not _QUOTA & {*failure.names}:
        return ModelUnavailable(f"the reply broke off: {error}")
    if accepted:
        error.unbilled = False
    return error


def _error(status: int, failure: ErrorBody, wait_s: float | None) -> ModelError:
    name = next((name for name in failure.names if name not in failure.message), "")
    message = one_line(f"{name}: {failure.message}" if name and failure.message else name or failure.message)
    if _QUOTA & {*failure.names}:
        return ModelSetupError(
            f"HTTP {status}: {message} (the account's quota is used up; waiting does not help)", "api_key_env"
        )
    if _OVERLOADED & {*failure.names} and status != _TOO_MANY:
        return ModelUnavailable(
            f"HTTP {status}: {message}", unbilled=True, overloaded=True, retry_after_s=wait_s
        )
    if _TOO_LONG & {*failure.names}:
        return too_long(status, message)
    error = error_for_status(status, message, own=failure.own, wait_s=wait_s)
    hint = next((_HINTS[name] for name in (*failure.names, failure.param) if name in _HINTS), None)
    if hint and isinstance(error, ModelSetupError) and error.setting != "max_output_tokens":
        return ModelSetupError(f"HTTP {status}: {message} ({hint})")
    return error


def _status_of(failure: ErrorBody) -> int:
    """Return the status that an error in a stream would have had as a response."""
    known = failure.status or next((_STATUS[name] for name in failure.names if name in _STATUS), None)
    if known is not None:
        return known
    if _QUOTA & {*failure.names}:
        return _TOO_MANY
    return 400 if any(_PERMANENT.match(name) for name in failure.names) else 500


def _reset_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until exhausted limits are reset, from ``x-ratelimit-reset-*``."""
    waits = [
        wait_s
        for name in ("requests", "tokens")
        if headers.get(f"x-ratelimit-remaining-{name}", "").strip() == "0"
        and (wait_s := _seconds(headers.get(f"x-ratelimit-reset-{name}", ""))) is not None
    ]
    return max(waits, default=None)


def _wait_in_message_s(message: str) -> float | None:
    """Return the wait in a message like "Please try again in 1.2s"."""
    found = _TRY_AGAIN.search(message)
    return None if found is None else _seconds(found.group(1))


def _seconds(text: str) -> float | None:
    """Parse a duration such as "6m0s", "20ms" or "1.2s"; the result is at most an hour."""
    parts = _DURATION.findall(text[:100])
    if not parts:
        return None
    return min(sum(float(count) * _UNIT_S[unit] for count, unit in parts), _LONGEST_WAIT_S)


def usage_from(reported: object) -> Usage | None:
    """Return the usage that the provider reported, or None if it is missing, malformed or inconsistent.

    Decodes both Responses (``input_tokens``, ``output_tokens``) and Chat Completions (``prompt_tokens``,
    ``completion_tokens``), of servers that report both the larger counts. The prompt count includes cache
    reads and writes, except with proxies that leave them out, as their total shows. Servers that exclude
    reasoning from the completion count include it in the total, and bill it.
    """
    if not isinstance(reported, dict):
        return None
    of_prompt, of_output = (
        [reported.get(f"{name}_tokens_details") for name in names]
        for names in (("input", "prompt"), ("output", "completion"))
    )
    prompt = largest(reported.get("input_tokens"), reported.get("prompt_tokens"))
    output = largest(reported.get("output_tokens"), reported.get("completion_tokens"))
    hits = reported.get("prompt_cache_hit_tokens")
    read = largest(0, hits, *(member(each, "cached_tokens") for each in of_prompt))
    written = largest(0, *(member(each, "cache_write_tokens") for each in of_prompt))
    reasoning = largest(0, *(member(each, "reasoning_tokens") for each in of_output))
    # No prompt is empty: a count of zero means that nothing was counted.
    if not prompt or output is None or read is None or written is None or reasoning is None:
        return None
    total = count(reported.get("total_tokens")) or 0
    if read + written > prompt and total == prompt + read + written + output:
        prompt += read + written
    output = max(output, total - prompt)
    if read + written > prompt or reasoning > output:
        return None
    return Usage(prompt - read - written, read, written, output, reasoning)


def wire_usage(usage: Usage | None, prompt: Literal["input", "prompt"]) -> dict[str, Any] | None:
    """Return a usage in the format of Responses (``prompt`` is "input") or Chat Completions ("prompt")."""
    if usage is None:
        return None
    output = "output" if prompt == "input" else "completion"
    return {
        f"{prompt}_tokens": usage.prompt,
        f"{prompt}_tokens_details": {
            "cached_tokens": usage.cache_read,
            "cache_write_tokens": usage.cache_write,
        },
        f"{output}_tokens": usage.output,
        f"{output}_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }
