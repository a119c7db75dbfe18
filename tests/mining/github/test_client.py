"""Lookups are answered in few requests; whatever GitHub says of one of them is the outcome of that one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.mining.github.answer import (
    Answer,
    ApiOutcome,
    CommitFacts,
    Lookup,
    LookupKind,
    PullRequestFacts,
    RepositoryFacts,
)
from support.llm.provider.http import Call
from support.mining.github.client import connected, github
from support.mining.github.server import Hub, bad_gateway, cut, hang_up, raw, reset, serving, stall
from support.mining.github.world import World, oid

pytestmark = pytest.mark.anyio

REPOSITORY, PULL, COMMIT = LookupKind.REPOSITORY, LookupKind.PULL_REQUEST, LookupKind.COMMIT


def world_of(count: int, name: str = "made/one") -> tuple[World, list[Lookup]]:
    """Return a world with ``count`` merged pull requests of one repository, and their lookups."""
    world = World()
    repository = world.add(name)
    for number in range(1, count + 1):
        repository.add_merged(number)
    return world, [Lookup(PULL, name, str(number)) for number in range(1, count + 1)]


async def test_250_pull_requests_take_seven_requests_and_as_many_points(tmp_path: Path) -> None:
    world, lookups = world_of(250)
    async with github(world, tmp_path) as session:
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert session.hub.requests == ["POST /graphql"] * 7
        assert session.client.statistics().points == 7
        assert session.hub.most_at_once <= 2


async def test_facts_are_those_of_the_pull_request_and_its_repository(tmp_path: Path) -> None:
    world = World()
    repository = world.add("Made/One", stars=7, licence="Apache-2.0", fork=True)
    pull = repository.add_merged(
        12, title="Tïtle \U0001f6e0", body="a\r\n\0b", files=3, additions=2, deletions=1
    )
    async with github(world, tmp_path) as session:
        lookup = Lookup(PULL, "made/one", "12")
        (answer,) = (await session.client.look_up([lookup])).values()
    facts = answer.facts
    assert isinstance(facts, PullRequestFacts)
    assert facts.repository == RepositoryFacts(name="Made/One", stars=7, licence="Apache-2.0", fork=True)
    assert (facts.title, facts.body) == ("Tïtle \U0001f6e0", "a\r\n\0b")
    assert (facts.golden, facts.files, facts.additions, facts.deletions) == (pull.merged_by, 3, 2, 1)
    assert facts.merged_at is not None
    assert facts.merged_at.isoformat() == "2025-11-01T12:00:05+00:00"


async def test_one_batch_has_every_outcome(tmp_path: Path) -> None:
    world, _ = world_of(1)
    world.add("made/new").add_merged(1)
    world.renames["made/old"] = "made/new"
    world.add("made/closed", forbidden="Resource protected by organization SAML enforcement.")
    tag = oid("tag")
    world.repositories["made/one"].tags.add(tag)
    expected = {
        Lookup(PULL, "made/one", "1"): ApiOutcome.FOUND,
        Lookup(PULL, "made/one", "2"): ApiOutcome.NOT_FOUND,
        Lookup(PULL, "made/gone", "1"): ApiOutcome.DELETED,
        Lookup(PULL, "made/old", "1"): ApiOutcome.FOUND,
        Lookup(PULL, "made/closed", "1"): ApiOutcome.REFUSED,
        Lookup(PULL, "made", "1"): ApiOutcome.INVALID,
        Lookup(PULL, "made/..", "1"): ApiOutcome.INVALID,
        Lookup(PULL, "../one", "1"): ApiOutcome.INVALID,
        Lookup(PULL, "made/one\n", "1"): ApiOutcome.INVALID,
        Lookup(PULL, "made/one", "1\x1b[2J"): ApiOutcome.INVALID,
        Lookup(PULL, 'made/"){x}', "1"): ApiOutcome.INVALID,
        Lookup(PULL, "made/one", "0"): ApiOutcome.INVALID,
        Lookup(PULL, "made/one", str(2**31)): ApiOutcome.INVALID,
        Lookup(PULL, "made/one", "٣"): ApiOutcome.INVALID,
        Lookup(COMMIT, "made/one", tag): ApiOutcome.NOT_FOUND,
        Lookup(COMMIT, "made/one", oid("nothing")): ApiOutcome.NOT_FOUND,
        Lookup(COMMIT, "made/one", "HEAD"): ApiOutcome.INVALID,
        Lookup(REPOSITORY, "made/one"): ApiOutcome.FOUND,
        Lookup(REPOSITORY, "made/gone"): ApiOutcome.DELETED,
    }
    async with github(world, tmp_path) as session:
        answers = await session.client.look_up(expected)
        assert {lookup: answer.outcome for lookup, answer in answers.items()} == expected
        assert session.hub.requests == ["POST /graphql"] * 3
    facts = answers[Lookup(PULL, "made/old", "1")].facts
    assert isinstance(facts, PullRequestFacts)
    assert facts.repository.name == "made/new"
    assert "SAML" in answers[Lookup(PULL, "made/closed", "1")].detail
    assert all(answer.detail.isprintable() for answer in answers.values())


async def test_a_commit_has_the_pull_request_that_it_merged(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one")
    pull = repository.add_merged(5, title="Split it")
    alone = repository.add_commit("alone", message="tidy\n\nall of it", files=None)
    branch = pull.commits[0]
    repository.add_commit("x").oid = branch
    repository.commits[branch] = repository.commits.pop(oid("made/one x"))
    assert pull.merged_by is not None
    async with github(world, tmp_path) as session:
        lookups = [Lookup(COMMIT, "made/one", each) for each in (pull.merged_by, alone.oid, branch)]
        answers = await session.client.look_up(lookups)
    merged, single, inside = (answers[each].facts for each in lookups)
    assert isinstance(merged, CommitFacts)
    assert isinstance(single, CommitFacts)
    assert isinstance(inside, CommitFacts)
    assert merged.pull_request is not None
    assert merged.pull_request.title == "Split it"
    assert (single.pull_request, single.files, single.message) == (None, None, "tidy\n\nall of it")
    assert inside.pull_request is None


TIMED_OUT = b'{"data":null,"errors":[{"message":"Something went wrong. It may be a timeout."}]}'


@pytest.mark.parametrize(
    "fault", [bad_gateway, reset, hang_up, cut, raw(200, b"<html>"), raw(200, TIMED_OUT), raw(500, b"")]
)
async def test_a_failed_request_is_repeated_after_a_pause(fault: object, tmp_path: Path) -> None:
    world, lookups = world_of(4)
    async with github(world, tmp_path) as session:
        session.hub.faults.append(fault)  # type: ignore[arg-type]
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert len(session.hub.requests) == 3
        assert len(session.hub.clock.sleeps) == 1


async def test_a_request_without_an_answer_is_given_up_in_time(tmp_path: Path) -> None:
    world, lookups = world_of(2)
    async with github(world, tmp_path, timeout=0.3) as session:
        session.hub.faults.append(stall)
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}


def lookups_in(body: dict[str, Any]) -> int:
    """Return how many lookups a request was for."""
    return sum(name.startswith("o") for name in body["variables"])


@pytest.mark.parametrize(("heavy", "cut"), [(30, 2), (10, 3), (7, 4)])
async def test_all_requests_learn_which_size_passes(heavy: int, cut: int, tmp_path: Path) -> None:
    world, lookups = world_of(1000)
    async with github(world, tmp_path, in_flight=8) as session:
        session.hub.heavy = heavy
        for start in range(0, 1000, 200):
            answers = await session.client.look_up(lookups[start : start + 200])
            assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert session.hub.cut <= cut
        assert max(session.hub.clock.sleeps) < 2  # none of them counts as a failure of the server


async def test_a_size_grows_again_after_it_failed_for_a_time(tmp_path: Path) -> None:
    world, lookups = world_of(1000)
    async with github(world, tmp_path, in_flight=8) as session:
        await session.client.look_up(lookups[:100])
        session.hub.heavy = 10
        await session.client.look_up(lookups[100:200])
        assert [lookups_in(body) for body in session.hub.bodies[-8:]] == [10] * 8
        session.hub.heavy = 1000
        before = len(session.hub.bodies)
        answers = await session.client.look_up(lookups[200:])
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert {lookups_in(body) for body in session.hub.bodies[before:]} == {10, 20}


async def test_one_lookup_that_fails_in_every_batch_costs_its_neighbours_nothing(tmp_path: Path) -> None:
    world, lookups = world_of(200)
    texts = [lookup._replace(kind=LookupKind.PULL_REQUEST_TEXTS) for lookup in lookups]
    async with github(world, tmp_path, in_flight=8) as session:
        session.hub.too_slow = 130
        answers = await session.client.look_up([*lookups, *texts])
        failed = [lookup for lookup in answers if answers[lookup].outcome is not ApiOutcome.FOUND]
        assert failed == [texts[129]]  # REST has the other
        assert answers[failed[0]].outcome is ApiOutcome.UNAVAILABLE
        assert answers[failed[0]].detail == "GitHub answered 502"
        assert len(session.hub.requests) < 100  # 15 without it


async def test_rest_answers_what_graphql_cannot(tmp_path: Path) -> None:
    world, lookups = world_of(40)
    world.repositories["made/one"].pulls[20].fault = "RESOURCE_LIMITS_EXCEEDED"
    async with github(world, tmp_path) as session:
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert session.hub.requests == ["POST /graphql"] * 3 + ["GET /repos/made/one/pulls/20"]


async def test_a_broken_lookup_does_not_affect_its_batch(tmp_path: Path) -> None:
    world, lookups = world_of(10)
    world.repositories["made/one"].pulls[4].fault = "INTERNAL"
    async with github(world, tmp_path) as session:
        session.hub.world.repositories["made/one"].pulls[4].files = -1
        answers = await session.client.look_up(lookups)
    bad = [lookup.key for lookup, answer in answers.items() if answer.outcome is not ApiOutcome.FOUND]
    assert bad == ["4"]
    assert answers[lookups[3]].outcome is ApiOutcome.MALFORMED
    assert answers[lookups[3]].detail.startswith("changed_files: ")


@pytest.mark.parametrize("in_flight", [1, 8])
async def test_an_outage_ends_in_a_bounded_number_of_requests(in_flight: int, tmp_path: Path) -> None:
    world, lookups = world_of(900)
    async with github(world, tmp_path, in_flight=in_flight) as session:
        found = await session.client.look_up(lookups[:400])
        assert {answer.outcome for answer in found.values()} == {ApiOutcome.FOUND}
        session.hub.requests.clear()
        session.hub.faults.extend([bad_gateway] * 10_000)
        answers = await session.client.look_up(lookups[400:])
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.UNAVAILABLE}
        assert len(session.hub.requests) <= 45
        assert "times in a row, last: GitHub answered 502" in answers[lookups[400]].detail
        assert 300 < session.client.statistics().waited_s < 1200


async def test_a_query_that_github_does_not_know_is_refused_at_once(tmp_path: Path) -> None:
    world, lookups = world_of(30)
    async with github(world, tmp_path) as session:
        error = (
            b'{"errors":[{"extensions":{"code":"undefinedField"},"message":"Field \'x\' doesn\'t exist"}]}'
        )
        session.hub.faults.append(raw(200, error))
        answers = await session.client.look_up(lookups)
        assert set(answers.values()) == {Answer(ApiOutcome.REFUSED, detail="Field 'x' doesn't exist")}
        assert len(session.hub.requests) == 1


async def test_a_batch_with_too_large_a_reply_is_halved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("codetaste.mining.github.connection.MAX_REPLY_BYTES", 16_384)
    world, lookups = world_of(4)
    for pull in world.repositories["made/one"].pulls.values():
        pull.body = "x" * 6000
    world.repositories["made/one"].pulls[2].body *= 4
    async with github(world, tmp_path) as session:
        answers = await session.client.look_up(lookups)
        outcomes = [answers[lookup].outcome for lookup in lookups]
        assert outcomes == [ApiOutcome.FOUND, ApiOutcome.UNAVAILABLE, ApiOutcome.FOUND, ApiOutcome.FOUND]
        assert "more than 16,384 bytes" in answers[lookups[1]].detail
        assert session.hub.clock.sleeps == []  # the server is not to blame


async def test_a_later_client_asks_only_for_what_failed(tmp_path: Path) -> None:
    world, lookups = world_of(30)
    lookups.append(Lookup(PULL, "made/gone", "1"))
    async with serving(world) as hub:
        async with connected(hub, tmp_path, batch=10) as session:
            await session.client.look_up(lookups[:10])
            hub.faults.extend([bad_gateway] * 1000)
            failed = await session.client.look_up(lookups[10:20])
            assert {answer.outcome for answer in failed.values()} == {ApiOutcome.UNAVAILABLE}
        hub.faults.clear()
        hub.requests.clear()
        async with connected(hub, tmp_path, batch=100) as session:
            first = await session.client.look_up(lookups)
            assert hub.requests == ["POST /graphql"]
            assert len(hub.bodies[-1]["variables"]) == 3 * 21
            hub.requests.clear()
            assert await session.client.look_up(lookups) == first
            assert hub.requests == []
            assert session.client.statistics().cached == 10 + 31


async def test_cached_answers_count_for_their_age(tmp_path: Path) -> None:
    world, lookups = world_of(1)
    async with github(world, tmp_path, cache_age="2d") as session:
        await session.client.look_up(lookups)
        session.hub.clock.time_s += 2 * 86400 - 60
        await session.client.look_up(lookups)
        assert len(session.hub.requests) == 1
        session.hub.clock.time_s += 120
        await session.client.look_up(lookups)
        assert len(session.hub.requests) == 2


async def test_a_cancelled_run_keeps_the_batches_that_were_answered(tmp_path: Path) -> None:
    world, lookups = world_of(30)
    async with serving(world) as hub:
        async with connected(hub, tmp_path, batch=10, in_flight=1) as session:
            with anyio.CancelScope() as scope:

                async def cancel(_hub: Hub, _call: Call) -> None:
                    scope.cancel()
                    await anyio.sleep_forever()

                await session.client.look_up(lookups[:10])
                hub.faults.append(cancel)
                await session.client.look_up(lookups)
        assert scope.cancelled_caught
        async with connected(hub, tmp_path) as session:
            answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.FOUND}
        assert len(hub.bodies[-1]["variables"]) == 3 * 20
