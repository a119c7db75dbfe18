"""Error responses in each protocol that make a CLI agent stop at once if a retry is useless.

The status and error codes at which Claude Code, Codex and Qwen Code stop or retry were measured for the
versions that ``agents/`` pins: Codex retries everything but a 400, Claude Code retries 401 and 429 for
minutes, and all of them retry 5xx.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire.common.sse import format_event
from codetaste.llm.wire.openai_chat.server import END

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.wire.common.request import ProtocolName


class ErrorKind(StrEnum):
    """Why a request is not answered. ``UNAVAILABLE`` may pass; ``GIVEN_UP`` is after the last retry."""

    BUDGET = "budget"
    RATE_LIMIT = "rate_limit"
    NOT_ALLOWED_MODEL = "not_allowed_model"
    BAD_TOKEN = "bad_token"  # noqa: S105 - a kind, not a token
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class ErrorResponse:
    """An error response. In a stream that has begun, only ``body`` is used, as its last events."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _ErrorCode:
    status: int
    kind: str
    code: str = ""


_STOP = "invalid_prompt"
"""A code in a stream at which the pinned Codex does not retry."""
_ANTHROPIC = {
    ErrorKind.BUDGET: _ErrorCode(402, "permission_error"),
    ErrorKind.RATE_LIMIT: _ErrorCode(429, "rate_limit_error"),
    ErrorKind.NOT_ALLOWED_MODEL: _ErrorCode(403, "permission_error"),
    ErrorKind.BAD_TOKEN: _ErrorCode(403, "authentication_error"),
    ErrorKind.BAD_REQUEST: _ErrorCode(400, "invalid_request_error"),
    ErrorKind.TOO_LARGE: _ErrorCode(413, "request_too_large"),
    ErrorKind.UNAVAILABLE: _ErrorCode(503, "api_error"),
    ErrorKind.GIVEN_UP: _ErrorCode(403, "permission_error"),
}
_CHAT = {
    ErrorKind.BUDGET: _ErrorCode(402, "insufficient_quota", "insufficient_quota"),
    ErrorKind.RATE_LIMIT: _ErrorCode(429, "rate_limit_error", "rate_limit_exceeded"),
    ErrorKind.NOT_ALLOWED_MODEL: _ErrorCode(403, "permission_error", "model_not_found"),
    ErrorKind.BAD_TOKEN: _ErrorCode(403, "authentication_error", "invalid_api_key"),
    ErrorKind.BAD_REQUEST: _ErrorCode(400, "invalid_request_error", _STOP),
    ErrorKind.TOO_LARGE: _ErrorCode(413, "invalid_request_error", "context_length_exceeded"),
    ErrorKind.UNAVAILABLE: _ErrorCode(503, "server_error", "server_error"),
    ErrorKind.GIVEN_UP: _ErrorCode(403, "permission_error", _STOP),
}
_TRANSIENT = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.UNAVAILABLE})
_RESPONSES = {
    kind: _ErrorCode(error_code.status if kind in _TRANSIENT else 400, error_code.kind, error_code.code)
    for kind, error_code in _CHAT.items()
}


def error_response(
    protocol: ProtocolName,
    kind: ErrorKind,
    message: str,
    *,
    retry_after_s: float | None = None,
    retry: bool = True,
    stream_started: bool = False,
) -> ErrorResponse:
    """Return the error response to a request.

    Args:
        protocol: of the request.
        kind: of the error.
        message: for the agent; one line.
        retry_after_s: seconds until the agent may retry, if known.
        retry: whether the agent may retry at all after a transient error.
        stream_started: whether the beginning of a reply has been sent, so that no status can follow.
    """
    error_code = {"anthropic": _ANTHROPIC, "openai": _RESPONSES, "openai-chat": _CHAT}[protocol][kind]
    if stream_started:
        return ErrorResponse(200, _last_events(protocol, error_code, message))
    may_retry = retry and kind in _TRANSIENT
    headers = {"content-type": "application/json", "x-should-retry": "true" if may_retry else "false"}
    if may_retry and retry_after_s is not None:
        headers["retry-after"] = str(ceil(retry_after_s))
    return ErrorResponse(
        error_code.status, json.dumps(_body(protocol, error_code, message)).encode(), headers
    )


def _body(protocol: ProtocolName, error_code: _ErrorCode, message: str) -> dict[str, Any]:
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": error_code.kind, "message": message}}
    return {"error": {"message": message, "type": error_code.kind, "param": None, "code": error_code.code}}


def _last_events(protocol: ProtocolName, error_code: _ErrorCode, message: str) -> bytes:
    body = _body(protocol, error_code, message)
    match protocol:
        case "anthropic":
            return format_event(body, name="error")
        case "openai-chat":
            return format_event(body) + END
        case "openai":
            error = {"code": error_code.code, "message": message}
            response = {"id": "resp_failed", "object": "response", "status": "failed", "error": error}
            event = {"type": "response.failed", "response": {**response, "output": [], "usage": None}}
            return format_event(event, name="response.failed")
