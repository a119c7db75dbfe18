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
    congestion: AdaptiveLimit, of_round: int, now_s: float, asked_s: float | None = None, wait_s: float = 1.0
) -> Backoff:
    return congestion.record_refusal(of_round, now_s, asked_s, lambda _: max(wait_s, asked_s or 0.0))


def sent(congestion: AdaptiveLimit, now_s: float) -> list[int]:
    """Send as much as there is room for."""
    rounds = []
    while congestion.has_room(now_s):
        rounds.append(congestion.start_request(now_s))
    return rounds


def test_a_burst_of_refusals_lowers_the_limit_once() -> None:
    congestion = AdaptiveLimit(100, patience_s=600)
    rounds = sent(congestion, 0.0)
    assert len(rounds) == 100
    for each in rounds:
        refuse(congestion, each, 0.5)
    assert (congestion.limit, congestion.in_flight) == (70, 0)


def test_round_limit_falls_from_reached_concurrency() -> None:
    congestion, bears, now_s, falls = AdaptiveLimit(1000, patience_s=600), 10, 0.0, []
    for _ in range(40):
        rounds = sent(congestion, now_s)
        assert len(rounds) <= (1000 if not now_s else 3 * bears)
        for each in rounds[bears:]:
            if refuse(congestion, each, now_s).new_round:
                falls.append(congestion.limit)
        now_s += 2.0
        for each in rounds[:bears]:
            congestion.record_success(each, now_s)
    assert falls[0] == 700
    assert all(bears / 2 < limit < 2 * bears for limit in falls[1:])
    assert bears / 2 < congestion.limit < 1.5 * bears


def test_adaptive_limit_stays_between_one_and_maximum() -> None:
    congestion, now_s = AdaptiveLimit(3, patience_s=10_000, step_s=2.0), 0.0
    for _ in range(8):
        each = congestion.start_request(now_s)
        now_s += 2.5  # the slow start is over
        refuse(congestion, each, now_s)
        now_s += 1.5
        assert congestion.has_room(now_s)
    assert congestion.limit == 1
    limits = []
    for _ in range(20):
        congestion.record_success(congestion.start_request(now_s), now_s)
        limits.append(congestion.limit)
    assert limits == sorted(limits)
    assert (limits.count(1), limits.count(2), limits[-1]) == (1, 2, 3)


def test_after_a_pause_one_probes_and_the_rest_follow_by_doubling() -> None:
    congestion = AdaptiveLimit(20, patience_s=600, step_s=2.0)
    refuse(congestion, congestion.start_request(0.0), 0.0, wait_s=5.0)
    assert congestion.limit == 14
    assert not congestion.has_room(4.9)
    assert congestion.opens_at(4.9) == 5.0
    at = [(5.0, 1), (6.9, 0), (7.0, 1), (9.0, 2), (11.0, 4), (13.0, 6), (15.0, 0)]
    assert [(now_s, len(sent(congestion, now_s))) for now_s, _ in at] == at


def test_a_refused_probe_waits_longer_and_leaves_the_limit() -> None:
    congestion, waits = AdaptiveLimit(10, patience_s=600), []
    now_s, each = 0.0, congestion.start_request(0.0)
    for _ in range(5):
        refusal = congestion.record_refusal(each, now_s, None, lambda times: 2.0**times)
        waits.append(refusal.pause_s)
        now_s += refusal.pause_s
        each = congestion.start_request(now_s)
    assert (waits, congestion.limit) == ([2.0, 4.0, 8.0, 16.0, 32.0], 7)


def test_longer_retry_after_extends_pause_shorter_does_not() -> None:
    congestion = AdaptiveLimit(4, patience_s=600)
    rounds = sent(congestion, 0.0)
    ends = []
    for each, asked_s in zip(rounds, [10.0, 3.0, 30.0, 20.0], strict=True):
        refuse(congestion, each, 1.0, asked_s)
        ends.append(congestion.paused_until_s)
    assert ends == [11.0, 11.0, 31.0, 31.0]
    assert congestion.limit == 2


def test_no_pause_is_longer_than_the_patience() -> None:
    congestion = AdaptiveLimit(4, patience_s=600)
    for each in sent(congestion, 0.0):
        refuse(congestion, each, 0.0, 10**9)
    assert congestion.paused_until_s == 600


def test_refusals_over_timeout_give_up_unless_a_call_is_running() -> None:
    congestion = AdaptiveLimit(4, patience_s=10)
    at_work = congestion.start_request(0.0)
    verdicts = []
    for now_s in range(0, 30, 4):
        verdicts.append(refuse(congestion, congestion.start_request(now_s), now_s).gave_up)
    assert not any(verdicts)
    congestion.release(at_work)
    assert refuse(congestion, congestion.start_request(32), 32).gave_up


def test_reply_or_long_silence_restarts_rate_limit_timeout() -> None:
    congestion = AdaptiveLimit(4, patience_s=10)
    for now_s in (0, 5):
        refuse(congestion, congestion.start_request(now_s), now_s)
    congestion.record_success(congestion.start_request(8), 8)
    verdicts = [refuse(congestion, congestion.start_request(now_s), now_s).gave_up for now_s in (9, 11, 18)]
    assert verdicts == [False] * REFUSED_ROUNDS
    assert not refuse(congestion, congestion.start_request(500), 500).gave_up
    verdicts = [refuse(congestion, congestion.start_request(now_s), now_s).gave_up for now_s in (505, 512)]
    assert verdicts == [False, True]


async def use(limiter: RateLimiter, act: Callable[[Permit], Any]) -> None:
    slot = await limiter.acquire()
    try:
        act(slot)
    finally:
        slot.release()


@pytest.mark.anyio
async def test_retry_after_pauses_all_callers_and_preserves_order() -> None:
    limiter = RateLimiter("m", maximum=4, step_s=0.01)
    first = await limiter.acquire()
    begun = anyio.current_time()
    said = first.refused(limited(0.1), RULE)
    assert said.startswith("m: rate limit (429); all calls wait 0.1 s, 2 instead of 4")
    assert str(limiter.wait_of("m")) == "m: rate limit (429), 1 s"
    times: list[float] = []
    order: list[int] = []

    async def call(number: int) -> None:
        def act(slot: Permit) -> None:
            times.append(anyio.current_time() - begun)
            order.append(number)
            slot.succeeded()

        await use(limiter, act)

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
        slot = await limiter.acquire()
        served.set()
        slot.release()

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        time.sleep(limiter.statistics().paused_s + 0.01)  # noqa: ASYNC251 - the loop is late, as it may be
        assert limiter.statistics().paused_s == 0
        assert limiter.acquire_nowait() is None
        await served.wait()
        assert limiter.acquire_nowait() is not None


@pytest.mark.anyio
async def test_raised_maximum_wakes_waiters_lowered_lets_calls_finish() -> None:
    limiter = RateLimiter("m", maximum=1)
    held: list[Permit] = []

    async def call() -> None:
        held.append(await limiter.acquire())

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(call)
        await anyio.wait_all_tasks_blocked()
        assert len(held) == 1
        limiter.maximum = 4
        await anyio.wait_all_tasks_blocked()
        assert (len(held), limiter.statistics().waiting) == (4, 2)
        limiter.maximum = 2
        assert not any(slot.valid for slot in held)  # what is not sent yet waits
        held[0].release()
        held[1].release()
        await anyio.wait_all_tasks_blocked()
        assert (len(held), limiter.statistics().in_flight) == (4, 2)
        assert held[2].valid
        held[2].release()
        held[3].release()
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
    asked = 0
    said: list[str] = []
    ends: list[float] = []

    async def refused_for_ever() -> None:
        nonlocal asked
        while True:
            slot = await limiter.acquire()
            asked += 1
            await anyio.sleep(0.001)
            said.append(slot.refused(error, RULE))

    async def call() -> None:
        with pytest.raises(
            RateLimited, match=r"m is given up: it has answered nothing for \d+ s but"
        ) as caught:
            await refused_for_ever()
        assert is_given_up(caught.value)
        assert str(error) in str(caught.value)
        ends.append(anyio.current_time())

    begun = anyio.current_time()
    async with anyio.create_task_group() as group:
        for _ in range(100):
            group.start_soon(call)
    probes = asked - 8
    assert probes >= REFUSED_ROUNDS - 1
    assert sum(text.startswith(f"m: {why}; all calls wait") for text in said) == probes
    assert ends[0] - begun >= 0.3
    assert len(ends) == 100
    assert limiter.statistics().gave_up == 1
    # Later callers share one probe, soon.
    async with anyio.create_task_group() as group:
        before = asked
        for _ in range(50):
            group.start_soon(call)
    assert asked == before + 1
    # And an answer mends it all.
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
        slot = await limiter.acquire()
        served += 1
        try:
            await anyio.sleep_forever()
        finally:
            slot.release()

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


def test_a_key_is_nowhere_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    limiters = LimiterRegistry()
    account, limiter = limiter_key_for(config()), limiters.limiter_for(config())
    assert account.key not in f"{account} {limiter}"
    assert "sk-secret" not in f"{account} {limiter} {account.key}"
