"""The stratified sample: its mix, its halves, its seed, and what is said if there are too few instances."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES, RefactoringInstance
from codetaste.swe_refactor.report.sample.apportion import apportion
from codetaste.swe_refactor.report.sample.stratified import TYPE_MIX, draw_sample
from support.swe_refactor.documents import document

if TYPE_CHECKING:
    from collections.abc import Sequence


def method(lines: int) -> str:
    return "\n".join(["void f() {", *["    a();"] * lines, "}"])


def instances(kind: str, short: int, long: int) -> list[RefactoringInstance]:
    return [
        RefactoringInstance.from_document(
            document(
                type=kind,
                uniqueId=f"{kind} {at}",
                sourceCodeBeforeRefactoring=method(10 if at < short else 11),
            )
        )
        for at in range(short + long)
    ]


def many(counts: Sequence[tuple[int, int]]) -> list[RefactoringInstance]:
    return [
        each
        for kind, (short, long) in zip(REFACTORING_TYPES, counts, strict=True)
        for each in instances(kind, short, long)
    ]


PAPER_SIZES = ((200, 241), (40, 31), (250, 160), (30, 112), (11, 10), (7, 7))
"""1,099 instances with the paper's types; how many are short is made up."""


@pytest.fixture(scope="module")
def all_instances() -> list[RefactoringInstance]:
    return many(PAPER_SIZES)


def test_200_have_the_papers_mix_and_halves(all_instances: list[RefactoringInstance]) -> None:
    sample = draw_sample(all_instances)
    assert {kind: sum(numbers) for kind, numbers in sample.counts.items()} == TYPE_MIX
    assert [sum(numbers) for numbers in zip(*sample.counts.values(), strict=True)] == [100, 100]
    assert len(set(sample.ids)) == 200
    kinds = [name.rpartition(" ")[0] for name in sample.ids]
    assert {kind: kinds.count(kind) for kind in TYPE_MIX} == TYPE_MIX


def test_other_sizes_are_proportional(all_instances: list[RefactoringInstance]) -> None:
    sample = draw_sample(all_instances, 51)
    assert [sum(numbers) for numbers in sample.counts.values()] == [20, 3, 19, 7, 1, 1]
    assert [sum(numbers) for numbers in zip(*sample.counts.values(), strict=True)] == [26, 25]
    assert draw_sample(all_instances, 0).ids == ()


def test_order_does_not_matter_and_the_seed_does(all_instances: list[RefactoringInstance]) -> None:
    first = draw_sample(all_instances, 40)
    assert draw_sample(all_instances[::-1], 40) == first
    assert set(draw_sample(all_instances, 40, seed=1).ids) != set(first.ids)


def test_new_instances_push_out_few() -> None:
    mix = {"Extract Method": 1}
    before = draw_sample(instances("Extract Method", 100, 100), 100, mix=mix)
    after = draw_sample(instances("Extract Method", 100, 110), 100, mix=mix)
    assert len(set(before.ids) & set(after.ids)) > 85


def test_types_with_too_few_instances_are_named() -> None:
    with pytest.raises(ConfigError) as caught:
        draw_sample(many(((80, 80), (20, 20), (80, 80), (20, 20), (1, 1), (1, 0))))
    assert caught.value.problems == (
        "too few instances for a sample of 200:",
        "Move And Rename Method: 4 needed, 2 given",
        "Move And Inline Method: 3 needed, 1 given",
    )


@pytest.mark.parametrize(
    ("counts", "how"), [((90, 900), "at most 10"), ((900, 90), "more than 10")], ids=["short", "long"]
)
def test_a_half_with_too_few_instances_is_named(counts: tuple[int, int], how: str) -> None:
    with pytest.raises(ConfigError, match=f"100 with {how} executable lines are needed, .* have 90"):
        draw_sample(instances("Extract Method", *counts), mix={"Extract Method": 1})


def test_an_instance_that_occurs_twice_is_refused() -> None:
    twice = instances("Extract Method", 2, 2)[:1] * 2
    with pytest.raises(ConfigError, match="1 instance twice in the list: Extract Method 0"):
        draw_sample(twice, 1)


def test_a_target_that_is_no_method_is_in_no_stratum() -> None:
    broken = RefactoringInstance.from_document(document(sourceCodeBeforeRefactoring="?", uniqueId="x"))
    sample = draw_sample([broken, *instances("Extract Method", 5, 5)], 4, mix={"Extract Method": 1})
    assert sample.uncounted == ("x",)
    assert "x" not in sample.ids


def test_a_sample_without_types_is_refused() -> None:
    with pytest.raises(ConfigError, match="no sample of 5 instances"):
        draw_sample(instances("Extract Method", 5, 5), 5, mix={})


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_seats_are_within_the_limits_and_nearest_to_the_weights(limits: list[tuple[int, int, int]]) -> None:
    weights = {at: float(weight) for at, (weight, _, _) in enumerate(limits)}
    least = {at: low for at, (_, low, _) in enumerate(limits)}
    most = {at: low + more for at, (_, low, more) in enumerate(limits)}
    seats = (sum(least.values()) + sum(most.values())) // 2
    given_seats = apportion(seats, weights, least, most)
    assert sum(given_seats.values()) == seats
    assert all(least[at] <= given_seats[at] <= most[at] for at in weights)
    # Webster: no seat can move to a key with a greater claim.
    last = [weights[at] / (2 * seats - 1) for at, seats in given_seats.items() if seats > least[at]]
    following = [weights[at] / (2 * seats + 1) for at, seats in given_seats.items() if seats < most[at]]
    assert min(last, default=9) >= max(following, default=0) - 1e-12


def test_seats_outside_of_the_limits_raise() -> None:
    with pytest.raises(ValueError, match="5 seats are outside"):
        apportion(5, {"a": 1}, {"a": 0}, {"a": 4})
