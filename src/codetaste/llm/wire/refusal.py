"""Refusals in the words of each protocol, so that a program stops at once where trying again is of no use.

Which status and which words make Claude Code, Codex and Qwen Code stop or try again was measured, for the
versions that ``agents/`` pins: Codex repeats everything but a 400, Claude Code repeats 401 and 429 for
minutes, and all of them repeat 5xx.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from math import ceil
from typing import TYPE_CHECKING, Any

from codetaste.llm.wire.openai_chat_reply import END
from codetaste.llm.wire.sse import written

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.llm.wire.request import Protocol


class Refused(StrEnum):
    """Why a request is not answered. ``UNAVAILABLE`` may pass, ``GIVEN_UP`` has been tried often enough."""

    BUDGET = "budget"
    RATE_LIMIT = "rate_limit"
    NOT_ALLOWED_MODEL = "not_allowed_model"
    BAD_TOKEN = "bad_token"  # noqa: S105 - a kind, not a token
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    GIVEN_UP = "given_up"


@dataclass(frozen=True, slots=True)
class Refusal:
    """An answer that is none; in a stream that has begun, ``body`` is its last events, the rest moot."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Words:
    status: int
    kind: str
    code: str = ""


_STOP = "invalid_prompt"
"""A code at which the current Codex does not try again when it comes in a stream."""
_ANTHROPIC = {
    Refused.BUDGET: _Words(402, "permission_error"),
    Refused.RATE_LIMIT: _Words(429, "rate_limit_error"),
    Refused.NOT_ALLOWED_MODEL: _Words(403, "permission_error"),
    Refused.BAD_TOKEN: _Words(403, "authentication_error"),
    Refused.BAD_REQUEST: _Words(400, "invalid_request_error"),
    Refused.TOO_LARGE: _Words(413, "request_too_large"),
    Refused.UNAVAILABLE: _Words(503, "api_error"),
    Refused.GIVEN_UP: _Words(403, "permission_error"),
}
_CHAT = {
    Refused.BUDGET: _Words(402, "insufficient_quota", "insufficient_quota"),
    Refused.RATE_LIMIT: _Words(429, "rate_limit_error", "rate_limit_exceeded"),
    Refused.NOT_ALLOWED_MODEL: _Words(403, "permission_error", "model_not_found"),
    Refused.BAD_TOKEN: _Words(403, "authentication_error", "invalid_api_key"),
    Refused.BAD_REQUEST: _Words(400, "invalid_request_error", _STOP),
    Refused.TOO_LARGE: _Words(413, "invalid_request_error", "context_length_exceeded"),
    Refused.UNAVAILABLE: _Words(503, "server_error", "server_error"),
    Refused.GIVEN_UP: _Words(403, "permission_error", _STOP),
}
_TRANSIENT = frozenset({Refused.RATE_LIMIT, Refused.UNAVAILABLE})
_RESPONSES = {
    kind: _Words(words.status if kind in _TRANSIENT else 400, words.kind, words.code)
    for kind, words in _CHAT.items()
}


def refusal(
    protocol: Protocol,
    kind: Refused,
    message: str,
    *,
    retry_after_s: float | None = None,
    retry: bool = True,
    stream_started: bool = False,
) -> Refusal:
    """Return how a request is refused.

    Args:
        protocol: of the request.
        kind: why.
        message: what the program is told; one line.
        retry_after_s: seconds after which it may ask again, where that is known.
        retry: whether it is to ask again at all, where the cause may pass.
        stream_started: whether the beginning of a reply has been sent, so that no status can be.
    """
    words = {"anthropic": _ANTHROPIC, "openai": _RESPONSES, "openai-chat": _CHAT}[protocol][kind]
    if stream_started:
        return Refusal(200, _last_events(protocol, words, message))
    again = retry and kind in _TRANSIENT
    headers = {"content-type": "application/json", "x-should-retry": "true" if again else "false"}
    if again and retry_after_s is not None:
        headers["retry-after"] = str(ceil(retry_after_s))
    return Refusal(words.status, json.dumps(_body(protocol, words, message)).encode(), headers)


def _body(protocol: Protocol, words: _Words, message: str) -> dict[str, Any]:
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": words.kind, "message": message}}
    return {"error": {"message": message, "type": words.kind, "param": None, "code": words.code}}


def _last_events(protocol: Protocol, words: _Words, message: str) -> bytes:
    body = _body(protocol, words, message)
    match protocol:
        case "anthropic":
            return written(body, name="error")
        case "openai-chat":
            return written(body) + END
        case "openai":
            error = {"code": words.code, "message": message}
            response = {"id": "resp_failed", "object": "response", "status": "failed", "error": error}
            event = {"type": "response.failed", "response": {**response, "output": [], "usage": None}}
            return written(event, name="response.failed")
