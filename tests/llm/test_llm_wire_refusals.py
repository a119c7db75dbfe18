"""Refusals have the status, the headers and the words at which each program stops, or tries again."""

from __future__ import annotations

import json

import pytest
from loopback_provider import PROTOCOLS, Protocol

from codetaste.errors import ModelError, ModelRefused, ModelUnavailable, RateLimited
from codetaste.llm.wire.refusal import Refused, refusal
from codetaste.llm.wire.serving import SERVING

PASSING = {Refused.RATE_LIMIT, Refused.UNAVAILABLE}
STATUSES = {
    # As measured: claude stops at 402 and repeats 401 and 429 for minutes unless told not to; codex repeats
    # everything but 400; qwen stops at any 4xx but 429.
    Refused.BUDGET: (402, 400, 402),
    Refused.RATE_LIMIT: (429, 429, 429),
    Refused.NOT_ALLOWED_MODEL: (403, 400, 403),
    Refused.BAD_TOKEN: (403, 400, 403),
    Refused.BAD_REQUEST: (400, 400, 400),
    Refused.TOO_LARGE: (413, 400, 413),
    Refused.UNAVAILABLE: (503, 503, 503),
    Refused.GIVEN_UP: (403, 400, 403),
}


@pytest.mark.parametrize("kind", Refused)
def test_a_refusal_has_the_status_that_a_program_understands(kind: Refused) -> None:
    refusals = [refusal(protocol, kind, "the budget is spent") for protocol in PROTOCOLS]
    assert tuple(each.status for each in refusals) == STATUSES[kind]
    for each in refusals:
        assert each.headers["x-should-retry"] == ("true" if kind in PASSING else "false")
        assert json.loads(each.body)["error"]["message"] == "the budget is spent"


def test_a_spent_budget_is_said_in_the_words_of_each_protocol() -> None:
    said = [json.loads(refusal(protocol, Refused.BUDGET, "no").body) for protocol in PROTOCOLS]
    quota = {"message": "no", "type": "insufficient_quota", "param": None, "code": "insufficient_quota"}
    assert said == [
        {"type": "error", "error": {"type": "permission_error", "message": "no"}},
        {"error": quota},
        {"error": quota},
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_wait_is_told_in_whole_seconds_unless_nobody_is_to_wait(protocol: Protocol) -> None:
    asked = refusal(protocol, Refused.RATE_LIMIT, "slow down", retry_after_s=1.2)
    assert (asked.headers["retry-after"], asked.headers["x-should-retry"]) == ("2", "true")
    never = refusal(protocol, Refused.RATE_LIMIT, "slow down", retry_after_s=1.2, retry=False)
    assert ("retry-after" in never.headers, never.headers["x-should-retry"]) == (False, "false")


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", Refused)
def test_our_own_clients_understand_a_refusal(protocol: Protocol, kind: Refused) -> None:
    answer = refusal(protocol, kind, "no", retry_after_s=7)
    error = SERVING[protocol].error_from(answer.status, json.loads(answer.body), answer.headers)
    expected: dict[Refused, type[ModelError]] = {
        Refused.RATE_LIMIT: RateLimited,
        Refused.UNAVAILABLE: ModelUnavailable,
    }
    assert isinstance(error, expected.get(kind, ModelRefused))
    if isinstance(error, RateLimited | ModelUnavailable):
        assert error.retry_after_s == 7


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", Refused)
def test_a_stream_that_has_begun_ends_with_the_refusal(protocol: Protocol, kind: Refused) -> None:
    tap = SERVING[protocol].tap(streamed=True)
    tap.feed(refusal(protocol, kind, "the budget is spent", stream_started=True).body)
    error = tap.tapped().error
    assert error is not None
    assert "the budget is spent" in str(error)
    assert isinstance(error, RateLimited | ModelUnavailable) == (kind in PASSING)
