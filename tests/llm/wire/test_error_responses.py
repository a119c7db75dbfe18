"""Refusals have the status, headers and text at which each client program stops or retries."""

from __future__ import annotations

import json

import pytest

from codetaste.errors import ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.wire.codecs import CLIENTS
from codetaste.llm.wire.common.error_codes import ErrorKind
from codetaste.llm.wire.error_responses import error_response
from codetaste.llm.wire.usage_tap import UsageTap
from support.llm.provider.server import PROTOCOLS, Protocol

TEMPORARY = {ErrorKind.RATE_LIMIT, ErrorKind.UNAVAILABLE}
STATUSES = {
    # As measured: claude stops at 402 and repeats 401 and 429 for minutes unless instructed; codex repeats
    # everything but 400; qwen stops at any 4xx but 429.
    ErrorKind.BUDGET: (402, 400, 402),
    ErrorKind.RATE_LIMIT: (429, 429, 429),
    ErrorKind.NOT_ALLOWED: (403, 400, 403),
    ErrorKind.BAD_TOKEN: (403, 400, 403),
    ErrorKind.BAD_REQUEST: (400, 400, 400),
    ErrorKind.TOO_LARGE: (413, 400, 413),
    ErrorKind.UNAVAILABLE: (503, 503, 503),
    ErrorKind.GIVEN_UP: (403, 400, 403),
}


@pytest.mark.parametrize("kind", ErrorKind)
def test_refusal_has_status_that_the_program_understands(kind: ErrorKind) -> None:
    refusals = [error_response(protocol, kind, "the budget is spent") for protocol in PROTOCOLS]
    assert tuple(each.status for each in refusals) == STATUSES[kind]
    for each in refusals:
        assert each.headers["x-should-retry"] == ("true" if kind in TEMPORARY else "false")
        assert json.loads(each.body)["error"]["message"] == "the budget is spent"


def test_budget_error_uses_words_of_each_protocol() -> None:
    documents = [json.loads(error_response(protocol, ErrorKind.BUDGET, "no").body) for protocol in PROTOCOLS]
    quota = {"message": "no", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    assert documents == [
        {"type": "error", "error": {"type": "permission_error", "message": "no"}},
        {"error": quota},
        {"error": quota},
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_rate_limit_without_retry_has_header(protocol: Protocol) -> None:
    never = error_response(protocol, ErrorKind.RATE_LIMIT, "slow down", retry=False)
    assert never.headers["x-should-retry"] == "false"


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ErrorKind)
def test_own_clients_understand_refusal(protocol: Protocol, kind: ErrorKind) -> None:
    answer = error_response(protocol, kind, "no")
    error = CLIENTS[protocol].error_from(answer.status, json.loads(answer.body), answer.headers)
    expected: dict[ErrorKind, type[ModelError]] = {
        ErrorKind.RATE_LIMIT: RateLimited,
        ErrorKind.UNAVAILABLE: ModelUnavailable,
    }
    assert isinstance(error, expected.get(kind, ModelRefused))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ErrorKind)
def test_started_stream_ends_with_refusal(protocol: Protocol, kind: ErrorKind) -> None:
    tap = UsageTap(protocol)
    tap.feed(error_response(protocol, kind, "the budget is spent", stream_started=True).body)
    error = tap.result().error
    assert error is not None
    assert "the budget is spent" in str(error)
    assert isinstance(error, RateLimited | ModelUnavailable) == (kind in TEMPORARY)
