"""Who starts next, against a model that recounts everything at every step."""

from __future__ import annotations

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.orchestration.scheduler.fair_queue import FairQueue


def test_queue_prefers_lane_with_fewest_running_then_round_robin() -> None:
    admission: FairQueue[str] = FairQueue({"jobs": 4})
    for number in range(3):
        for lane in ("a", "b"):
            admission.push(f"{lane}{number}", lane, {"jobs": 1})
    assert [admission.pop() for _ in range(5)] == ["a0", "b0", "a1", "b1", None]
    admission.release("b", {"jobs": 1})
    assert admission.pop() == "b2"
    admission.release("a", {"jobs": 1})
    assert admission.pop() == "a2"


def test_lane_with_endless_jobs_leaves_permits_of_others() -> None:
    admission: FairQueue[str] = FairQueue({"jobs": 4})
    for number in range(100):
        admission.push(f"failing {number}", "failing", {"jobs": 1})
    for number in range(10):
        admission.push(f"good {number}", "good", {"jobs": 1})
    started = [admission.pop() for _ in range(4)]
    assert sum(str(name).startswith("good") for name in started) == 2


def test_a_big_job_is_started_although_small_ones_keep_coming() -> None:
    admission: FairQueue[str] = FairQueue({"cpu": 4})
    admission.push("long", "big", {"cpu": 1})
    assert admission.pop() == "long"
    admission.push("big", "big", {"cpu": 3})
    running = 0
    for number in range(1000):
        admission.push(f"small {number}", "small", {"cpu": 1})
        while (item := admission.pop()) is not None:
            if item == "big":
                return
            running += 1
        if running:
            admission.release("small", {"cpu": 1})
            running -= 1
    raise AssertionError("starved")


def test_what_the_first_in_turn_waits_for_is_not_given_to_another_lane() -> None:
    admission: FairQueue[str] = FairQueue({"cpu": 2, "sandbox": 1})
    admission.push("old", "small", {"cpu": 1})
    assert admission.pop() == "old"
    admission.push("big", "big", {"cpu": 2})
    admission.push("small", "small", {"cpu": 1})
    admission.push("elsewhere", "other", {"sandbox": 1})
    assert admission.pop() == "elsewhere"  # competes for nothing with the big one
    assert admission.pop() is None
    admission.release("small", {"cpu": 1})
    assert admission.pop() == "big"


def test_within_a_lane_the_first_that_came_is_the_first_that_starts() -> None:
    admission: FairQueue[int] = FairQueue({"cpu": 2})
    for number, need in enumerate([1, 2, 1, 1]):
        admission.push(number, "", {"cpu": need})
    assert admission.pop() == 0
    assert admission.pop() is None
    admission.release("", {"cpu": 1})
    assert admission.pop() == 1


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32))
def test_limits_are_never_exceeded_and_everything_gets_its_turn(seed: int) -> None:
    rng = random.Random(seed)
    capacities = {"jobs": rng.randint(1, 6), "cpu": rng.choice([1.0, 2.0, 4.0]), "sandbox": 2}
    admission: FairQueue[int] = FairQueue(capacities)
    demands: dict[int, tuple[str, dict[str, float]]] = {}
    for item in range(rng.randint(1, 60)):
        demand = {"jobs": 1.0}
        if rng.random() < 0.5:
            demand["cpu"] = rng.choice([0.1, 0.3, 1.0, capacities["cpu"]])
        if rng.random() < 0.3:
            demand["sandbox"] = rng.choice([1, 2])
        demands[item] = (rng.choice("abc"), demand)
    coming, running, ended = list(demands), set[int](), list[int]()
    queues: dict[str, list[int]] = {"a": [], "b": [], "c": []}
    while len(ended) < len(demands):
        for _ in range(rng.randint(0, 5)):
            if coming:
                item = coming.pop(0)
                queues[demands[item][0]].append(item)
                admission.push(item, *demands[item])
        while (started := admission.pop()) is not None:
            assert queues[demands[started][0]].pop(0) == started
            running.add(started)
            used: Counter[str] = Counter()
            for other in running:
                used.update(demands[other][1])
            assert all(used[name] <= capacities[name] + 1e-6 for name in used)
        assert running or coming or not any(queues.values()), "free, and yet nothing starts"
        for item in rng.sample(sorted(running), rng.randint(min(1, len(running)), len(running))):
            running.remove(item)
            ended.append(item)
            admission.release(*demands[item])
