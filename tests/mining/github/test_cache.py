"""The cache survives kills, damage and other processes, and never has half of a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from codetaste.errors import SourceError, StorageFull
from codetaste.mining.github.answer import ApiOutcome, Lookup, LookupKind
from codetaste.mining.github.cache import AnswerCache, CachedAnswer
from support.mining.github.client import connected
from support.mining.github.server import serving
from support.mining.github.world import World

pytestmark = pytest.mark.anyio

ANSWER = CachedAnswer(12.5, '"tag"', b"value" * 100)


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[tuple[AnswerCache, list[str]]]:
    reports: list[str] = []
    cache = AnswerCache(path, reports.append)
    await cache.open()
    try:
        yield cache, reports
    finally:
        await cache.close()


async def test_answers_are_found_again_among_thousands_of_keys(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "answers.sqlite"
    stored = {f"key {number}": ANSWER for number in range(0, 3000, 2)}
    async with opened(path) as (cache, _):
        await cache.put(stored)
    async with opened(path) as (cache, _):
        assert await cache.get([f"key {number}" for number in range(3000)]) == stored


async def test_a_damaged_file_begins_anew_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    path.write_bytes(b"this is no database" * 1000)
    async with opened(path) as (cache, reports):
        await cache.put({"a": ANSWER})
        assert await cache.get(["a"]) == {"a": ANSWER}
    assert reports == [f"{path}: the cache is damaged; it begins anew"]


async def test_a_damaged_answer_and_one_of_another_format_are_replaced(tmp_path: Path) -> None:
    world = World()
    world.add("made/one", stars=5)
    lookup = Lookup(LookupKind.REPOSITORY, "made/one")
    path = tmp_path / "github.sqlite"
    statements = [
        "update answers set value = x'0000'",
        "update answers set value = 5",
        "update answers set stored_at = 0",
        "pragma user_version = 99",
    ]
    async with serving(world) as hub:
        for number, statement in enumerate(statements):
            async with connected(hub, tmp_path) as session:
                answer = (await session.client.look_up([lookup]))[lookup]
                assert answer.outcome is ApiOutcome.FOUND
            assert len(hub.requests) == number + 1
            with sqlite3.connect(path) as database:
                database.execute(statement)
            database.close()


async def test_two_processes_write_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    async with opened(path) as (first, _), opened(path) as (second, _), anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(first.put, {f"first {number}": ANSWER})
            tasks.start_soon(second.put, {f"second {number}": ANSWER})
    async with opened(path) as (cache, _):
        names = [f"{who} {number}" for who in ("first", "second") for number in range(20)]
        assert set(await cache.get(names)) == set(names)


async def test_a_full_disk_and_an_unwritable_place_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(SourceError, match="must be"):
        await AnswerCache(tmp_path / "file" / "answers.sqlite", print).open()
    with pytest.raises(SourceError, match="must be readable and writable"):
        await AnswerCache(tmp_path, print).open()
    async with opened(tmp_path / "answers.sqlite") as (cache, _):
        assert cache._database is not None
        cache._database.execute("pragma max_page_count = 4")
        big = CachedAnswer(0.0, "", bytes(range(256)) * 4096)
        with pytest.raises(StorageFull, match="free space"):
            await cache.put({f"{number}": big._replace(value=big.value[number:]) for number in range(64)})
        assert await cache.get([f"{number}" for number in range(64)]) == {}


async def test_a_cancelled_caller_loses_no_answer_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite"
    async with opened(path) as (cache, _):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await cache.put({"a": ANSWER})
        assert set(await cache.get(["a"])) == {"a"}
