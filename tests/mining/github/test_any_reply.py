"""Whatever a server replies, lookups have outcomes, and only documented errors are raised."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.github.answer import Answer, ApiFacts, Lookup, LookupKind
from codetaste.mining.github.completion import complete_records
from codetaste.mining.github.connection import ApiReply
from codetaste.mining.github.graphql import read_answers
from support.llm.provider.http import Call
from support.mining.github import graphql_api
from support.mining.github.client import connected
from support.mining.github.server import Fault, Hub, serving
from support.mining.github.world import World, oid

LOOKUPS = [
    Lookup(LookupKind.PULL_REQUEST, "made/one", "1"),
    Lookup(LookupKind.PULL_REQUEST, "made/one", "2"),
    Lookup(LookupKind.COMMIT, "made/one", oid("made/one root")),
    Lookup(LookupKind.PULL_REQUEST_TEXTS, "made/one", "1"),
    Lookup(LookupKind.PARENT, "made/one", "1"),
    Lookup(LookupKind.REPOSITORY, "made/one"),
]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(),
    st.text(st.characters()),  # lone surrogates, too
    st.sampled_from(["NOT_FOUND", "x0", "item", "2025-11-01T12:00:05Z", "a" * 40, "a/b", "RATE_LIMITED"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
ERRORS = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(["NOT_FOUND", "FORBIDDEN", "INTERNAL", "RESOURCE_LIMITS_EXCEEDED", 7]),
            "path": st.lists(st.sampled_from(["x0", "x1", "item", 0, None]), max_size=3),
            "message": st.text(max_size=20) | st.integers(),
            "extensions": st.just({"code": "undefinedField"}) | VALUES,
        },
    )
    | VALUES,
    max_size=3,
)
HEADER_VALUES = ["0", "1", "7", "-1", "soon", "9" * 30, "1764000300", "", "Mon, 24 Nov 2025 16:02:00 GMT"]
HEADER_VALUES += ["gzip", "deflate", "zstd", "identity", "/repos/a/b", "http://[", "//127.0.0.2:1/", '"\xe9"']
HEADERS = st.dictionaries(
    st.sampled_from(
        ["retry-after", "x-ratelimit-remaining", "x-ratelimit-reset", "etag", "location", "content-encoding"]
    ),
    st.sampled_from(HEADER_VALUES),
    max_size=3,
)
CODES = [201, 204, 206, 301, 302, 304, 308, 400, 401, 403, 404, 409, 410, 418, 422, 429, 451, 500, 503, 999]
STATUSES = st.just(200) | st.sampled_from(CODES)
KINDS = st.sampled_from(["text/html", "application/json", "application/json; charset=utf-16", "\xff"])
BODIES = st.one_of(
    st.binary(max_size=40),
    VALUES.map(lambda value: json.dumps(value).encode()),
    st.builds(lambda data, errors: json.dumps({"data": data, "errors": errors}).encode(), VALUES, ERRORS),
    st.just(b"[" * 100_000),
    st.just(b"9" * 5000),
    st.just(gzip.compress(b" " * 30_000_000, 1)),
    st.just(b'{"data": {"x0": {"nameWithOwner": "\\ud800"}}}'),
)


def paths_in(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to each part of a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for key, part in inner for path in paths_in(part, (*at, key)))]


def replaced(value: Any, path: tuple[Any, ...], by: Any) -> Any:
    """Return ``value`` with another part at ``path``."""
    if not path:
        return by
    key, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[key] = replaced(value[key], tuple(rest), by)
    return copy


def made_world() -> World:
    world = World()
    repository = world.add("made/one")
    for number in (1, 2):
        repository.add_merged(number)
    return world


# All is drawn before the requests, whose order may vary.
MUTATIONS = st.tuples(st.integers(0, 1000), VALUES, ERRORS | st.none(), st.sampled_from([200, 200, 403, 502]))
REPLIES = st.tuples(
    st.sampled_from(["reply", "reply", "reply", "raw", "cut", "reset"]),
    STATUSES,
    KINDS,
    HEADERS,
    BODIES,
    st.binary(min_size=1, max_size=60),
)


def mutated_reply(place: int, value: Any, errors: Any, status: int) -> Fault:
    """Return a fault that answers a query correctly, except for one part of the reply and its errors."""

    async def fault(hub: Hub, call: Call) -> None:
        if call.path != "/graphql":
            await hub.respond(call, status, value)
            return
        limit = {"cost": 1, "limit": 5000, "remaining": 4999, "resetAt": "2026-01-01T00:00:00Z"}
        reply = graphql_api.run_query(hub.world, json.loads(call.data), limit)
        paths = paths_in(reply)
        changed = replaced(reply, paths[place % len(paths)], value)
        if isinstance(changed, dict) and errors is not None:
            changed = {**changed, "errors": errors}
        await hub.respond(call, status, changed)

    return fault


def any_reply(way: str, status: int, kind: str, headers: dict[str, str], body: bytes, noise: bytes) -> Fault:
    """Return a fault that answers anything, or breaks the connection."""

    async def fault(_hub: Hub, call: Call) -> None:
        call.keep = False  # a status without a body may have one here
        match way:
            case "reply":
                await call.respond(status, body, {"content-type": kind, **headers})
            case "raw":
                await call.stream.send(noise + b"\r\n\r\n")
            case "cut":
                await call.head(200, {"content-length": str(len(body) + 1)})
                await call.send(body)
                await call.hang_up()
            case _:
                await call.reset()

    return fault


async def ask(faults: list[Any], *, token: str, folder: Path) -> None:
    records = [
        CommitRecord("made/one", "", pull_request=PullRequest(1, "", "")),
        CommitRecord("made/one", oid("made/one root")),
    ]
    async with serving(made_world()) as hub, connected(hub, folder, token, timeout=20) as session:
        hub.faults.extend(faults)
        try:
            answers = await session.client.look_up(LOOKUPS)
            assert set(answers) == set(LOOKUPS)
            completed = [each async for each in complete_records(records, session.client)]
            assert len(completed) == len(records)
            # What was stored can be read again.
            assert set(await session.client.look_up(LOOKUPS)) == set(LOOKUPS)
        except ConfigError as error:
            message = str(error)
        else:
            message = ""
        assert "\n" not in "".join(session.reports)
        assert not message or "does not accept the token" in message


def check_replies(plans: list[Any], *, token: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        faults = [any_reply(*plan) for plan in plans]
        anyio.run(
            lambda: ask(faults, token="github_not_a_token_at_all" if token else "", folder=Path(folder))
        )


def check_mutations(plans: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        faults = [mutated_reply(*plan) for plan in plans]
        anyio.run(lambda: ask(faults, token="github_not_a_token_at_all", folder=Path(folder)))


@settings(max_examples=6)
@given(st.lists(REPLIES, max_size=6), st.booleans())
def test_any_reply_is_an_outcome(plans: list[Any], token: bool) -> None:
    check_replies(plans, token=token)


@settings(max_examples=6)
@given(st.lists(MUTATIONS, max_size=6))
def test_a_reply_with_one_wrong_part_is_an_outcome(plans: list[Any]) -> None:
    check_mutations(plans)


@pytest.mark.heavy
@settings(max_examples=60)
@given(st.lists(REPLIES, max_size=12), st.booleans())
def test_any_of_many_replies_is_an_outcome(plans: list[Any], token: bool) -> None:
    check_replies(plans, token=token)


@pytest.mark.heavy
@settings(max_examples=60)
@given(st.lists(MUTATIONS, max_size=12))
def test_any_of_many_replies_with_one_wrong_part_is_an_outcome(plans: list[Any]) -> None:
    check_mutations(plans)


@given(st.data(), st.sampled_from([LOOKUPS[:2], LOOKUPS[2:3], LOOKUPS[3:4], LOOKUPS[4:5], LOOKUPS[5:]]))
def test_each_lookup_of_a_batch_is_answered_or_repeated(data: st.DataObject, batch: list[Lookup]) -> None:
    nodes = st.fixed_dictionaries({}, optional={"x0": VALUES, "x1": VALUES, "rateLimit": VALUES})
    reply = {"data": data.draw(nodes | VALUES), "errors": data.draw(ERRORS | VALUES)}
    answers, failed = read_answers(batch, ApiReply(data.draw(st.sampled_from([200, 403, 422])), reply))
    assert answers.keys() | failed.keys() == set(batch)
    assert not answers.keys() & failed.keys()
    for answer in answers.values():
        assert isinstance(answer, Answer)
        assert isinstance(answer.facts, ApiFacts) or answer.detail
    assert all(failed.values())
