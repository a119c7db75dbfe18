"""Whatever a server says about its limits, no request is sent before the time, and no wait is endless."""

from __future__ import annotations

import random

import anyio
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.github.answer import ApiOutcome
from codetaste.mining.github.pacer import Pacer, RequestStopped, WallClock
from support.mining.github.server import Clock

WAIT_LIMIT_S = 1000.0
RESOURCES = st.sampled_from(["graphql", "core"])
EVENTS = st.one_of(
    st.tuples(st.just("retry-after"), RESOURCES, st.integers(0, 1500)),
    st.tuples(st.just("used up"), RESOURCES, st.integers(-100, 1500)),
    st.tuples(st.just("refused"), RESOURCES, st.just(0)),
    st.tuples(st.just("failed"), RESOURCES, st.just(0)),
    st.tuples(st.just("answered"), RESOURCES, st.integers(-100, 1500)),
    st.tuples(st.just("time passes"), RESOURCES, st.integers(0, 2000)),
)


def note(pacer: Pacer, clock: Clock, event: tuple[str, str, int]) -> tuple[str, float]:
    """Tell the pacer of an event; return which resource must wait until when ("": all of them)."""
    kind, resource, seconds = event
    reset = str(int(clock.time_s) + seconds)
    match kind:
        case "retry-after":
            pacer.note_refusal(resource, {"retry-after": str(seconds)})
            return "", clock.time_s + seconds
        case "used up":
            pacer.note_refusal(resource, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})
            return resource, float(reset)
        case "refused":
            pacer.note_refusal(resource, {})
            return "", clock.time_s + 60
        case "failed":
            pacer.note_failure("a reason")
            return "", clock.time_s + 0.75
        case "answered":
            pacer.note_success()
            pacer.note_headers(resource, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": reset})
            return resource, float(reset)
    clock.time_s += seconds
    return "", 0.0


@given(st.lists(EVENTS, max_size=30), RESOURCES, st.integers())
def test_no_turn_comes_before_its_time_and_every_turn_ends(
    events: list[tuple[str, str, int]], resource: str, seed: int
) -> None:
    async def run() -> None:
        clock = Clock()
        pacer = Pacer(WAIT_LIMIT_S, lambda _: None, random.Random(seed), WallClock(clock.now, clock.sleep))
        earliest: dict[str, float] = {}
        for event in events:
            name, until = note(pacer, clock, event)
            earliest[name] = max(earliest.get(name, 0.0), until)
        began = clock.time_s
        try:
            await pacer.turn(resource)
        except RequestStopped as stop:
            stopped = stop.outcome
        else:
            stopped = ApiOutcome.FOUND
            assert clock.time_s >= max(earliest.get("", 0.0), earliest.get(resource, 0.0))
        assert stopped in {ApiOutcome.FOUND, ApiOutcome.LIMITED, ApiOutcome.UNAVAILABLE}
        assert clock.time_s - began <= WAIT_LIMIT_S + 75

    anyio.run(run)
