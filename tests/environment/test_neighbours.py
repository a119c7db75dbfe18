"""Neighbours: proven environments of the same repository, the likeliest first."""

from __future__ import annotations

import random
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from codetaste.benchmark.instance import Instance
from codetaste.benchmark.layout import environment_folder, scripts_folder
from codetaste.environment.levels import Level
from codetaste.environment.neighbours import KnownEnvironment, neighbours, read_environments
from codetaste.environment.record import EnvironmentDetails, EnvironmentRecord, new_metadata, write_record
from support.environment.instances import instance, scripts

WANTED = instance(0)


def known(number: int, *, dependencies: str = "", level: Level = Level.GATES_PASS) -> KnownEnvironment:
    one = instance(number)
    details = EnvironmentDetails(level=level, dependencies=dependencies)
    record = EnvironmentRecord(new_metadata(one, setup_image=f"setup-{number}"), details)
    return KnownEnvironment(one, record, scripts(b"# %d\n" % number))


def numbers(found: tuple[KnownEnvironment, ...]) -> list[int]:
    return [int(each.instance.hash8, 16) for each in found]


def test_same_dependencies_come_first_then_the_nearest_in_the_table() -> None:
    environments = [
        known(1),
        known(3, dependencies="other"),
        known(4, dependencies="same"),
        known(5),
    ]
    found = neighbours(
        WANTED,
        environments,
        dependencies="same",
        order=[instance(number) for number in (3, 9, 0, 5)],
    )
    assert numbers(found) == [4, 5, 3, 1]


def test_unknown_dependencies_are_not_the_same() -> None:
    order = [instance(number) for number in (0, 2, 1)]
    assert numbers(neighbours(WANTED, [known(1), known(2)], order=order)) == [2, 1]


def test_other_repositories_unproven_ones_and_itself_are_none() -> None:
    other = KnownEnvironment(instance(7, repo="bellows"), known(7).record, scripts())
    renamed = KnownEnvironment(instance(8, owner="ACME"), known(8).record, scripts())
    found = neighbours(WANTED, [other, renamed, known(0), known(9, level=Level.TESTS_START)])
    assert numbers(found) == [8]


def test_same_scripts_in_the_same_image_are_tried_once() -> None:
    first, second = known(1), known(2)
    same = KnownEnvironment(second.instance, first.record, first.scripts)
    order = [instance(number) for number in (0, 2, 1)]
    assert numbers(neighbours(WANTED, [first, same], order=order)) == [2]


@given(
    environments=st.lists(
        st.builds(
            known,
            st.integers(1, 30),
            dependencies=st.sampled_from(["", "a", "b"]),
        ),
        unique_by=lambda each: each.instance.id,
    ),
    order=st.permutations([instance(number) for number in range(20)]),
    seed=st.randoms(),
)
def test_order_depends_on_closeness_alone(
    environments: list[KnownEnvironment], order: list[Instance], seed: random.Random
) -> None:
    wanted = neighbours(WANTED, environments, dependencies="a", order=order)
    assert set(numbers(wanted)) == set(numbers(tuple(environments)))
    same = [each.dependencies == "a" for each in wanted]
    assert same == sorted(same, reverse=True)
    seed.shuffle(environments)
    assert neighbours(WANTED, environments, dependencies="a", order=order) == wanted


def test_environments_of_a_store_are_read_and_damaged_ones_named(tmp_path: Path) -> None:
    instances = [instance(number) for number in range(1, 5)]
    for each in instances[:3]:
        write_record(tmp_path, each, EnvironmentRecord(new_metadata(each, has_execution_environment=True)))
        scripts().write(scripts_folder(tmp_path, each))
    (scripts_folder(tmp_path, instances[1]) / "run_tests").unlink()
    (environment_folder(tmp_path, instances[2]) / "instance_metadata.json").write_text("{")
    found, problems = read_environments(tmp_path, instances)
    assert [each.instance for each in found] == [instances[0]]
    assert [problem.partition(": ")[2][:8] for problem in problems] == ["missing", "not JSON"]
