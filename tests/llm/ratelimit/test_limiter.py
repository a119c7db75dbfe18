from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from codetaste.errors import ModelError, ModelUnavailable, RateLimited
from codetaste.llm.config import ModelConfig
from codetaste.llm.ratelimit.adaptive import REFUSED_ROUNDS, AdaptiveLimit, Backoff
from codetaste.llm.ratelimit.limiter import Permit, RateLimiter
from codetaste.llm.ratelimit.registry import LimiterRegistry, limiter_key_for
from codetaste.orchestration.retry import RetryRule, is_given_up

RULE = RetryRule(tries=8, first_s=0.02, max_s=0.1, jitter=0)


def limited(seconds: float | None = None) -> RateLimited:
    return RateLimited("HTTP 429: slow down", retry_after_s=seconds)


def refuse(
    adaptive: AdaptiveLimit,
    of_round: int,
    now_s: float,
    retry_after_s: float | None = None,
    wait_s: float = 1.0,
) -> Backoff:
    return adaptive.record_refusal(
        of_round, now_s, retry_after_s, lambda _: max(wait_s, retry_after_s or 0.0)
    )


def fill(adaptive: AdaptiveLimit, now_s: float) -> list[int]:
    """Send requests until there is no room."""
    rounds = []
    while adaptive.has_room(now_s):
        rounds.append(adaptive.start_request(now_s))
    return rounds


def test_burst_of_refusals_lowers_limit_once() -> None:
    adaptive = AdaptiveLimit(100, patience_s=600)
    rounds = fill(adaptive, 0.0)
    assert len(rounds) == 100
    for each in rounds:
        refuse(adaptive, each, 0.5)
    assert (adaptive.limit, adaptive.in_flight) == (70, 0)


def test_round_limit_falls_from_reached_concurrency() -> None:
    adaptive, capacity, now_s, falls = AdaptiveLimit(1000, patience_s=600), 10, 0.0, []
    for _ in range(40):
        rounds = fill(adaptive, now_s)
        assert len(rounds) <= (1000 if not now_s else 3 * capacity)
        for each in rounds[capacity:]:
            if refuse(adaptive, each, now_s).new_round:
                falls.append(adaptive.limit)
        now_s += 2.0
        for each in rounds[:capacity]:
            adaptive.record_success(each, now_s)
    assert falls[0] == 700
    assert all(capacity / 2 < limit < 2 * capacity for limit in falls[1:])
    assert capacity / 2 < adaptive.limit < 1.5 * capacity


def test_adaptive_limit_stays_between_one_and_maximum() -> None:
    adaptive, now_s = AdaptiveLimit(3, patience_s=10_000, step_s=2.0), 0.0
    for _ in range(8):
        each = adaptive.start_request(now_s)
        now_s += 2.5  # the slow start is over
        refuse(adaptive, each, now_s)
        now_s += 1.5
        assert adaptive.has_room(now_s)
    assert adaptive.limit == 1
    limits = []
    for _ in range(20):
        adaptive.record_success(adaptive.start_request(now_s), now_s)
        limits.append(adaptive.limit)
    assert limits == sorted(limits)
    assert (limits.count(1), limits.count(2), limits[-1]) == (1, 2, 3)


def test_after_pause_one_request_probes_and_others_follow_by_doubling() -> None:
    adaptive = AdaptiveLimit(20, patience_s=600, step_s=2.0)
    refuse(adaptive, adaptive.start_request(0.0), 0.0, wait_s=5.0)
    assert adaptive.limit == 14
    assert not adaptive.has_room(4.9)
    assert adaptive.opens_at(4.9) == 5.0
    at = [(5.0, 1), (6.9, 0), (7.0, 1), (9.0, 2), (11.0, 4), (13.0, 6), (15.0, 0)]
    assert [(now_s, len(fill(adaptive, now_s))) for now_s, _ in at] == at


def test_refused_probe_extends_pause_and_leaves_limit() -> None:
    adaptive, waits = AdaptiveLimit(10, patience_s=600), []
    now_s, each = 0.0, adaptive.start_request(0.0)
    for _ in range(5):
        refusal = adaptive.record_refusal(each, now_s, None, lambda times: 2.0**times)
        waits.append(refusal.pause_s)
        now_s += refusal.pause_s
        each = adaptive.start_request(now_s)
    assert (waits, adaptive.limit) == ([2.0, 4.0, 8.0, 16.0, 32.0], 7)


def test_longer_retry_after_extends_pause_shorter_does_not() -> None:
    adaptive = AdaptiveLimit(4, patience_s=600)
    rounds = fill(adaptive, 0.0)
    ends = []
    for each, retry_after_s in zip(rounds, [10.0, 3.0, 30.0, 20.0], strict=True):
        refuse(adaptive, each, 1.0, retry_after_s)
        ends.append(adaptive.paused_until_s)
    assert ends == [11.0, 11.0, 31.0, 31.0]
    assert adaptive.limit == 2


def test_pause_is_at_most_the_patience() -> None:
    adaptive = AdaptiveLimit(4, patience_s=600)
    for each in fill(adaptive, 0.0):
        refuse(adaptive, each, 0.0, 10**9)
    assert adaptive.paused_until_s == 600


def test_refusals_over_timeout_give_up_unless_a_call_is_running() -> None:
    adaptive = AdaptiveLimit(4, patience_s=10)
    running = adaptive.start_request(0.0)
    verdicts = []
    for now_s in range(0, 30, 4):
        verdicts.append(refuse(adaptive, adaptive.start_request(now_s), now_s).gave_up)
    assert not any(verdicts)
    adaptive.release(running)
    assert refuse(adaptive, adaptive.start_request(32), 32).gave_up


def test_reply_or_long_silence_restarts_rate_limit_timeout() -> None:
    adaptive = AdaptiveLimit(4, patience_s=10)
    for now_s in (0, 5):
        refuse(adaptive, adaptive.start_request(now_s), now_s)
    adaptive.record_success(adaptive.start_request(8), 8)
    verdicts = [refuse(adaptive, adaptive.start_request(now_s), now_s).gave_up for now_s in (9, 11, 18)]
    assert verdicts == [False] * REFUSED_ROUNDS
    assert not refuse(adaptive, adaptive.start_request(500), 500).gave_up
    verdicts = [refuse(adaptive, adaptive.start_request(now_s), now_s).gave_up for now_s in (505, 512)]
    assert verdicts == [False, True]


async def use_permit(limiter: RateLimiter, use: Callable[[Permit], Any]) -> None:
    permit = await limiter.acquire()
    try:
        use(permit)
    finally:
        permit.release()


@pytest.mark.anyio
async def test_retry_after_pauses_all_callers_and_preserves_order() -> None:
    limiter = RateLimiter("m", maximum=4, step_s=0.01)
    first = await limiter.acquire()
    started = anyio.current_time()
    message = first.refused(limited(0.1), RULE)
    assert message.startswith("m: rate limit (429); all calls wait 0.1 s, 2 instead of 4")
    assert str(limiter.wait_of("m")) == "m: rate limit (429), 1 s"
    times: list[float] = []
    order: list[int] = []

    async def call(number: int) -> None:
        def use(permit: Permit) -> None:
            times.append(anyio.current_time() - started)
            order.append(number)
            permit.succeeded()

        await use_permit(limiter, use)

    async with anyio.create_task_group() as group:
        for number in range(30):
            group.start_soon(call, number)
    assert min(times) >= 0.1
    assert order == list(range(30))
    now = limiter.statistics()
    assert (now.in_flight, now.waiting, now.refused, now.answered) == (0, 0, 1, 30)


@pytest.mark.anyio
async def test_waiters_keep_order_when_capacity_returns_late() -> None:
    limiter = RateLimiter("m", maximum=2)
    (await limiter.acquire()).refused(limited(0.02), RULE)
    served = anyio.Event()

    async def call() -> None:
        permit = await limiter.acquire()
        served.set()
        permit.release()

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        time.sleep(limiter.statistics().paused_s + 0.01)  # noqa: ASYNC251 - makes the event loop late
        assert limiter.statistics().paused_s == 0
        assert limiter.acquire_nowait() is None
        await served.wait()
        assert limiter.acquire_nowait() is not None


@pytest.mark.anyio
async def test_raised_maximum_wakes_waiters_lowered_lets_calls_finish() -> None:
    limiter = RateLimiter("m", maximum=1)
    permits: list[Permit] = []

    async def call() -> None:
        permits.append(await limiter.acquire())

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        assert len(permits) == 1
        limiter.maximum = 4
        await anyio.wait_all_tasks_blocked()
        assert (len(permits), limiter.statistics().waiting) == (4, 2)
        limiter.maximum = 2
        assert not any(permit.valid for permit in permits)  # a request that is not sent yet waits
        permits[0].release()
        permits[1].release()
        await anyio.wait_all_tasks_blocked()
        assert (len(permits), limiter.statistics().in_flight) == (4, 2)
        assert permits[2].valid
        permits[2].release()
        permits[3].release()
    with pytest.raises(ValueError, match="at least one"):
        limiter.maximum = 0


@pytest.mark.anyio
async def test_permit_from_before_pause_is_invalid() -> None:
    limiter = RateLimiter("m", maximum=2, step_s=0.01)
    refused, other = await limiter.acquire(), await limiter.acquire()
    assert other.valid
    refused.refused(limited(0.02), RULE)
    assert not other.valid
    await anyio.sleep(0.05)
    assert not other.valid
    other.release()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("error", "why"),
    [
        (limited(), "rate limit (429)"),
        (ModelUnavailable("529", unbilled=True, overloaded=True), "overloaded"),
    ],
)
async def test_endless_refusals_give_up_for_all_waiters_at_once(error: ModelError, why: str) -> None:
    limiter = RateLimiter("m", maximum=8, patience_s=0.3, step_s=10.0)
    calls = 0
    messages: list[str] = []
    ends: list[float] = []

    async def call_for_ever() -> None:
        nonlocal calls
        while True:
            permit = await limiter.acquire()
            calls += 1
            await anyio.sleep(0.001)
            messages.append(permit.refused(error, RULE))

    async def call() -> None:
        with pytest.raises(
            type(error), match=r"m is given up: it has answered nothing for \d+ s but"
        ) as caught:
            await call_for_ever()
        assert is_given_up(caught.value)
        assert str(error) in str(caught.value)
        ends.append(anyio.current_time())

    started = anyio.current_time()
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(call)
    probes = calls - 8
    assert probes >= REFUSED_ROUNDS - 1
    assert sum(text.startswith(f"m: {why}; all calls wait") for text in messages) == probes
    assert ends[0] - started >= 0.3
    assert len(ends) == 100
    assert limiter.statistics().gave_up == 1
    # Later callers share one early probe.
    async with anyio.create_task_group() as group:
        before = calls
        for _ in range(50):
            group.start_soon(call)
    assert calls == before + 1
    # An answer ends the failure.
    await anyio.sleep(limiter.statistics().paused_s)
    (await limiter.acquire()).succeeded()
    (await limiter.acquire()).refused(error, RULE)
    assert limiter.statistics().gave_up == 2


@pytest.mark.anyio
async def test_thousand_waiters_share_one_timer_and_wake_singly() -> None:
    limiter = RateLimiter("m", maximum=1, step_s=0.01)
    (await limiter.acquire()).refused(limited(0.2), RULE)
    served = 0

    async def call() -> None:
        nonlocal served
        permit = await limiter.acquire()
        served += 1
        try:
            await anyio.sleep_forever()
        finally:
            permit.release()

    loop: Any = asyncio.get_running_loop()
    async with anyio.create_task_group() as group:
        for _ in range(1000):
            group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        timers = [handle for handle in loop._scheduled if not handle.cancelled()]
        assert len(timers) < 5
        await anyio.sleep(0.3)
        assert served == 1
        group.cancel_scope.cancel()
    now = limiter.statistics()
    assert (now.in_flight, now.waiting) == (0, 0)


def config(**fields: Any) -> ModelConfig:
    given = {"id": "a", "provider": "anthropic", "model": "x", "max_concurrency": 8, **fields}
    return ModelConfig(**given)


def test_models_with_same_limiter_key_share_smallest_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-one")
    monkeypatch.setenv("SAME", "sk-one")
    monkeypatch.setenv("OTHER", "sk-two")
    limiters = LimiterRegistry()
    first = limiters.limiter_for(config())
    same = limiters.limiter_for(
        config(id="b", api_key_env="SAME", max_concurrency=3, rate_limit_timeout="5m")
    )
    assert first is same
    assert (first.name, first.maximum, first.adaptive_limit.patience_s) == ("a and b", 3, 300)
    for other in (
        config(id="c", api_key_env="OTHER"),
        config(id="c", model="y"),
        config(id="c", base_url="https://example.org"),
    ):
        assert limiters.limiter_for(other) is not first
    scripted = [config(id=name, provider="scripted", model="s.py:f") for name in "de"]
    assert limiters.limiter_for(scripted[0]) is not limiters.limiter_for(scripted[1])


def test_key_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    limiters = LimiterRegistry()
    account, limiter = limiter_key_for(config()), limiters.limiter_for(config())
    assert account.key not in f"{account} {limiter}"
    assert "sk-secret" not in f"{account} {limiter} {account.key}"
