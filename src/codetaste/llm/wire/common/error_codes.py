"""Why the gateway does not answer a request, and the status and words for it that a protocol has."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ErrorKind(StrEnum):
    """Why a request is not answered. ``UNAVAILABLE`` may pass; ``GIVEN_UP`` is after the last retry."""

    BUDGET = "budget"
    RATE_LIMIT = "rate_limit"
    NOT_ALLOWED = "not_allowed"
    BAD_TOKEN = "bad_token"  # noqa: S105 - a kind, not a token
    BAD_REQUEST = "bad_request"
    TOO_LARGE = "too_large"
    UNAVAILABLE = "unavailable"
    GIVEN_UP = "given_up"


TRANSIENT_ERRORS = frozenset({ErrorKind.RATE_LIMIT, ErrorKind.UNAVAILABLE})


@dataclass(frozen=True, slots=True)
class ErrorCode:
    """The HTTP status of an error, its type, and its code in protocols that have one."""

    status: int
    kind: str
    code: str = ""
