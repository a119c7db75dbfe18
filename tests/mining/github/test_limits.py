"""The client waits as long as GitHub asks, sends nothing meanwhile, and never shows its token."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from codetaste.errors import ConfigError
from codetaste.mining.github.answer import ApiOutcome, Lookup, LookupKind, PullRequestFacts
from codetaste.mining.github.pacer import Pacer, WallClock, is_limit
from support.llm.provider.http import Call
from support.mining.github.client import VARIABLE, connected, github
from support.mining.github.server import (
    SECONDARY,
    TOKEN,
    Clock,
    Hub,
    graphql,
    raw,
    secondary_limit,
    serving,
)
from support.mining.github.world import World

pytestmark = pytest.mark.anyio

FOUND, LIMITED = ApiOutcome.FOUND, ApiOutcome.LIMITED


def world_of(count: int) -> tuple[World, list[Lookup]]:
    world = World()
    repository = world.add("made/one")
    for number in range(1, count + 1):
        repository.add_merged(number)
    return world, [Lookup(LookupKind.PULL_REQUEST, "made/one", str(n)) for n in range(1, count + 1)]


async def test_the_primary_limit_is_waited_for_once_and_then_all_is_answered(tmp_path: Path) -> None:
    world, lookups = world_of(60)
    async with github(world, tmp_path, batch=10, in_flight=1) as session:
        session.hub.limit("graphql").used = 4997
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        (waited,) = session.hub.clock.sleeps
        assert 3600 < waited < 3606
        assert session.reports == ["GitHub's rate limit is used up for 60 minutes; waiting"]
        assert session.hub.impolite == []
        assert len(session.hub.requests) == 6


async def test_a_limit_that_others_used_up_is_seen_in_the_first_refusal(tmp_path: Path) -> None:
    world, lookups = world_of(40)
    async with github(world, tmp_path, batch=10) as session:
        session.hub.limit("graphql").used = 4999
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        assert session.client.statistics().refusals <= 2  # as many as were under way


async def test_a_limit_beyond_the_allowed_wait_leaves_the_rest_for_a_later_run(tmp_path: Path) -> None:
    world, lookups = world_of(60)
    async with serving(world) as hub:
        async with connected(hub, tmp_path, batch=10, in_flight=1, wait_limit="10m") as session:
            hub.limit("graphql").used = 4997
            answers = await session.client.look_up(lookups)
            outcomes = [answers[lookup].outcome for lookup in lookups]
            assert outcomes == [FOUND] * 30 + [LIMITED] * 30
            assert answers[lookups[-1]].detail == "GitHub's rate limit is used up for 60 minutes"
            assert hub.clock.sleeps == []
        hub.clock.time_s += 3600
        hub.requests.clear()
        async with connected(hub, tmp_path) as session:
            answers = await session.client.look_up(lookups)
            assert {answer.outcome for answer in answers.values()} == {FOUND}
            assert hub.requests == ["POST /graphql"]


LIMIT_BODIES: list[tuple[int, Any]] = [
    (403, None),
    (429, None),
    (200, None),
    (200, {"data": None, "errors": [{"message": SECONDARY}]}),
    (200, {"errors": [{"type": "RATE_LIMIT", "extensions": {"code": "x"}, "message": "API rate limit"}]}),
    (200, {"data": {"x0": None, "x1": None}, "errors": [{"path": ["x0"], "message": SECONDARY}]}),
    (403, {"message": "You have triggered an abuse detection mechanism. Please wait."}),
]


@pytest.mark.parametrize(("status", "body"), LIMIT_BODIES)
@pytest.mark.parametrize("retry_after", [None, 5, 240])
async def test_after_a_secondary_limit_nothing_is_sent_as_long_as_github_asks(
    status: int, body: Any, retry_after: int | None, tmp_path: Path
) -> None:
    world, lookups = world_of(80)
    async with github(world, tmp_path, batch=10, in_flight=4) as session:
        await session.client.look_up(lookups[:10])
        session.hub.faults.append(secondary_limit(status, retry_after, body))
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        # Others were under way when the refusal was sent.
        assert len(session.hub.impolite) <= 3
        assert session.client.statistics().refusals == 1
        assert session.client.statistics().failures == 0
        assert len(session.hub.requests) == 9  # the batch was not split
        least_s = retry_after or 60
        assert least_s < session.client.statistics().waited_s < least_s + 6


async def test_requests_that_are_refused_together_are_one_refusal_and_the_next_one_goes_alone(
    tmp_path: Path,
) -> None:
    world, lookups = world_of(400)
    together = anyio.Event()
    alone: list[int] = []

    async def refuse(hub: Hub, call: Call) -> None:
        if hub.at_once == 8:
            together.set()
        await together.wait()
        await secondary_limit(200, 5)(hub, call)

    async def look(hub: Hub, call: Call) -> None:
        alone.append(hub.at_once)
        await graphql(hub, call)

    async with github(world, tmp_path, batch=10, in_flight=8) as session:
        await session.client.look_up(lookups[:10])
        session.hub.faults.extend([*[refuse] * 8, look])
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        assert alone == [1]
        assert session.client.statistics().refusals == 8
        assert session.client.statistics().waited_s < 8 * 10  # not longer each time


async def test_a_limit_that_comes_back_is_waited_for_longer_each_time(tmp_path: Path) -> None:
    world, lookups = world_of(10)
    async with github(world, tmp_path) as session:
        session.hub.faults.extend([secondary_limit(200, 5)] * 4)
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        least = [5, 120, 240, 480]
        assert all(s < slept < s + 6 for s, slept in zip(least, session.hub.clock.sleeps, strict=True))


async def test_facts_that_quote_a_limit_are_facts(tmp_path: Path) -> None:
    world, lookups = world_of(3)
    for pull in world.repositories["made/one"].pulls.values():
        pull.body = f"RATE_LIMITED: {SECONDARY}"
    world.repositories["made/one"].pulls[2].fault = "INTERNAL"  # REST answers
    async with github(world, tmp_path) as session:
        answers = await session.client.look_up([*lookups, missing := lookups[0]._replace(key="9")])
        assert {answers[lookup].outcome for lookup in lookups} == {FOUND}
        assert answers[missing].outcome is ApiOutcome.NOT_FOUND
        assert session.client.statistics().refusals == 0


async def test_requests_a_minute_stay_within_the_secondary_limit_that_refuses_them(tmp_path: Path) -> None:
    world, lookups = world_of(100)
    async with github(world, tmp_path, batch=5, in_flight=1) as session:
        session.hub.per_minute = 6
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {FOUND}
        assert session.hub.impolite == []


async def test_an_endless_secondary_limit_ends_after_longer_and_longer_waits(tmp_path: Path) -> None:
    world, lookups = world_of(300)
    async with github(world, tmp_path) as session:
        session.hub.faults.extend([secondary_limit()] * 1000)
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {LIMITED}
        assert len(session.hub.requests) <= 10
        sleeps = session.hub.clock.sleeps
        assert sleeps[0] > 60
        assert max(sleeps) > 600
        assert session.hub.impolite == []


async def test_a_refusal_of_access_is_no_limit(tmp_path: Path) -> None:
    world, lookups = world_of(2)
    async with github(world, tmp_path) as session:
        body = b'{"message":"The organization has an IP allow list enabled, and yours is not on it."}'
        session.hub.faults.append(raw(403, body))
        answers = await session.client.look_up(lookups)
        assert {answer.outcome for answer in answers.values()} == {ApiOutcome.REFUSED}
        assert session.hub.clock.sleeps == []


async def test_without_a_token_one_line_says_what_is_impossible_and_rest_does_what_it_can(
    tmp_path: Path,
) -> None:
    world, lookups = world_of(70)
    texts = Lookup(LookupKind.PULL_REQUEST_TEXTS, "made/one", "1")
    async with github(world, tmp_path, token="") as session:
        answers = await session.client.look_up([*lookups, texts])
        outcomes = [answers[lookup].outcome for lookup in lookups]
        assert outcomes == [FOUND] * 60 + [ApiOutcome.NO_TOKEN] * 10
        assert answers[texts].outcome is ApiOutcome.NO_TOKEN
        assert session.hub.impolite == []
        assert session.hub.clock.sleeps == []
        assert all("authorization" not in headers for headers in session.hub.headers)
        (line,) = session.reports
        assert line.startswith(f"{VARIABLE} is not set: GitHub's GraphQL needs a token")


async def test_an_old_rest_answer_is_confirmed_by_its_etag_at_no_cost(tmp_path: Path) -> None:
    world, lookups = world_of(2)
    async with github(world, tmp_path, token="", cache_age="1h") as session:
        first = await session.client.look_up(lookups)
        session.hub.clock.time_s += 7200
        world.repositories["made/one"].pulls[2].title = "Another title"
        again = await session.client.look_up(lookups)
        assert again[lookups[0]] == first[lookups[0]]
        changed = again[lookups[1]].facts
        assert isinstance(changed, PullRequestFacts)
        assert changed.title == "Another title"
        assert session.hub.limit("core", known=False).used == 1  # of this hour
        await session.client.look_up(lookups)
        assert len(session.hub.requests) == 4


async def test_a_renamed_repository_is_followed_and_another_server_is_not(tmp_path: Path) -> None:
    world = World()
    world.add("made/new").add_merged(3)
    world.renames["made/old"] = "made/new"
    lookup = Lookup(LookupKind.PULL_REQUEST, "made/old", "3")
    async with github(world, tmp_path, token="") as session:
        facts = (await session.client.look_up([lookup]))[lookup].facts
        assert isinstance(facts, PullRequestFacts)
        assert facts.repository.name == "made/new"
        away = raw(301, b"", location="http://127.0.0.2:9/repositories/1")
        session.hub.faults.extend([away, away])
        other = Lookup(LookupKind.PULL_REQUEST, "made/new", "3")
        answer = (await session.client.look_up([other]))[other]
        assert answer.outcome is ApiOutcome.UNAVAILABLE
        assert answer.detail == "GitHub redirected to another server, which is not followed"


async def test_a_wrong_token_ends_the_run_with_one_line_that_does_not_show_it(tmp_path: Path) -> None:
    world, lookups = world_of(1)
    async with github(world, tmp_path, token="wrong_secret") as session:
        with pytest.raises(ConfigError) as caught:
            await session.client.look_up(lookups)
        assert VARIABLE in str(caught.value)
        assert "wrong_secret" not in str(caught.value)


@pytest.mark.parametrize(
    "value", ["two words", "line\nbreak", "ünicode", "a\x00b".replace("\x00", "\x01"), "a=b"]
)
async def test_a_value_that_is_no_token_is_refused_without_showing_it(value: str, tmp_path: Path) -> None:
    async with serving(World()) as hub:
        with pytest.raises(ConfigError) as caught:
            async with connected(hub, tmp_path, token=value):
                pass
        assert value not in str(caught.value)


async def test_the_token_is_in_no_log_no_answer_and_no_file(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world, lookups = world_of(3)
    async with github(world, tmp_path) as session:
        echo = {
            "errors": [{"type": "FORBIDDEN", "path": ["x0"], "message": f"no {TOKEN}"}],
            "data": {"x0": None},
        }
        session.hub.faults.append(raw(200, json.dumps(echo).encode()))
        await session.client.look_up(lookups[:1])
        world.repositories["made/one"].pulls[2].body = f"my {TOKEN}"
        answers = await session.client.look_up(lookups)
        assert TOKEN not in repr(answers)
        assert TOKEN not in repr(vars(session.client))
        assert session.hub.headers[0]["authorization"] == f"Bearer {TOKEN}"
    assert TOKEN not in caplog.text
    files = [file.read_bytes() for file in tmp_path.iterdir()]  # noqa: ASYNC240 - a test
    assert files
    assert not any(TOKEN.encode() in content for content in files)


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "soon"},
        {"retry-after": "-5"},
        {"retry-after": "9" * 400},
        {"retry-after": "Wed, 99 Foo 2025"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "yesterday"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1"},
        {"x-ratelimit-remaining": "٣"},
        {},
    ],
)
async def test_nonsense_in_a_refusal_is_a_wait_of_a_minute(headers: dict[str, str]) -> None:
    clock = Clock()
    pacer = Pacer(600, lambda _: None, random.Random(0), WallClock(clock.now, clock.sleep))
    pacer.note_refusal("graphql", headers)
    await pacer.turn("graphql")
    assert 60 < sum(clock.sleeps) < 66


async def test_retry_after_may_be_a_date() -> None:
    clock = Clock(time_s=1_764_000_000.0)  # 2025-11-24 16:00:00
    pacer = Pacer(600, lambda _: None, random.Random(0), WallClock(clock.now, clock.sleep))
    pacer.note_refusal("graphql", {"retry-after": "Mon, 24 Nov 2025 16:02:00 GMT"})
    await pacer.turn("core")
    assert 120 < sum(clock.sleeps) < 126


def test_what_is_a_limit_and_what_is_not() -> None:
    assert is_limit(429, {}, "")
    assert is_limit(403, {}, "You have triggered an abuse detection mechanism.")
    assert is_limit(403, {"x-ratelimit-remaining": "0"}, "")
    assert is_limit(200, {"retry-after": "60"}, '{"data": null}')
    assert not is_limit(200, {"x-ratelimit-remaining": "0"}, '{"data": null}')
    assert not is_limit(403, {"x-ratelimit-remaining": "12"}, "Resource not accessible by integration")
