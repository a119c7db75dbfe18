"""Which job starts next, compared with a model that recounts everything at every step."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.orchestration.scheduler.fair_queue import FairQueue


def test_queue_prefers_lane_with_fewest_running_then_round_robin() -> None:
    queue: FairQueue[str] = FairQueue({"jobs": 4})
    for number in range(3):
        for lane in ("a", "b"):
            queue.push(f"{lane}{number}", lane, {"jobs": 1})
    assert [queue.pop() for _ in range(5)] == ["a0", "b0", "a1", "b1", None]
    queue.release("b", {"jobs": 1})
    assert queue.pop() == "b2"
    queue.release("a", {"jobs": 1})
    assert queue.pop() == "a2"


def test_lane_with_many_jobs_leaves_permits_for_others() -> None:
    queue: FairQueue[str] = FairQueue({"jobs": 4})
    for number in range(100):
        queue.push(f"failing {number}", "failing", {"jobs": 1})
    for number in range(10):
        queue.push(f"good {number}", "good", {"jobs": 1})
    started = [queue.pop() for _ in range(4)]
    assert sum(str(name).startswith("good") for name in started) == 2


def test_big_job_is_started_while_small_ones_keep_arriving() -> None:
    queue: FairQueue[str] = FairQueue({"cpu": 4})
    queue.push("long", "big", {"cpu": 1})
    assert queue.pop() == "long"
    queue.push("big", "big", {"cpu": 3})
    running = 0
    for number in range(1000):
        queue.push(f"small {number}", "small", {"cpu": 1})
        while (item := queue.pop()) is not None:
            if item == "big":
                return
            running += 1
        if running:
            queue.release("small", {"cpu": 1})
            running -= 1
    raise AssertionError("starved")


def test_resource_awaited_by_the_next_lane_is_not_given_to_another() -> None:
    queue: FairQueue[str] = FairQueue({"cpu": 2, "sandbox": 1})
    queue.push("old", "small", {"cpu": 1})
    assert queue.pop() == "old"
    queue.push("big", "big", {"cpu": 2})
    queue.push("small", "small", {"cpu": 1})
    queue.push("elsewhere", "other", {"sandbox": 1})
    assert queue.pop() == "elsewhere"  # competes for nothing with the big one
    assert queue.pop() is None
    queue.release("small", {"cpu": 1})
    assert queue.pop() == "big"


def test_jobs_of_a_lane_start_in_order() -> None:
    queue: FairQueue[int] = FairQueue({"cpu": 2})
    for number, need in enumerate([1, 2, 1, 1]):
        queue.push(number, "", {"cpu": need})
    assert queue.pop() == 0
    assert queue.pop() is None
    queue.release("", {"cpu": 1})
    assert queue.pop() == 1


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_limits_are_never_exceeded_and_every_job_starts(seed: int) -> None:
    rng = random.Random(seed)
    capacities = {"jobs": rng.randint(1, 6), "cpu": rng.choice([1.0, 2.0, 4.0]), "sandbox": 2}
    queue: FairQueue[int] = FairQueue(capacities)
    demands: dict[int, tuple[str, dict[str, float]]] = {}
    for item in range(rng.randint(1, 60)):
        demand = {"jobs": 1.0}
        if rng.random() < 0.5:
            demand["cpu"] = rng.choice([0.1, 0.3, 1.0, capacities["cpu"]])
        if rng.random() < 0.3:
            demand["sandbox"] = rng.choice([1, 2])
        demands[item] = (rng.choice("abc"), demand)
    arriving, running, ended = list(demands), set[int](), list[int]()
    queues: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    while len(ended) < len(demands):
        for _ in range(rng.randint(0, 5)):
            if arriving:
                item = arriving.pop(0)
                queues[demands[item][0]].append(item)
                queue.push(item, *demands[item])
        while (started := queue.pop()) is not None:
            assert queues[demands[started][0]].pop(0) == started
            running.add(started)
            used: Counter[str] = Counter()
            for other in running:
                used.update(demands[other][1])
            assert all(used[name] <= capacities[name] + 1e-6 for name in used)
        assert running or arriving or not any(queues.values()), "capacity is free, but no job starts"
        for item in rng.sample(sorted(running), rng.randint(min(1, len(running)), len(running))):
            running.remove(item)
            ended.append(item)
            queue.release(*demands[item])
