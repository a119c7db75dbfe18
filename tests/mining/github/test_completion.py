"""Records get what GitHub knows and keep what they had; each has an outcome."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from codetaste.mining.commit import CommitRecord, PullRequest
from codetaste.mining.github.answer import ApiOutcome
from codetaste.mining.github.completion import CompletedRecord, complete_records
from support.mining.github import rest_api
from support.mining.github.client import Session, connected, github
from support.mining.github.server import bad_gateway, raw, serving
from support.mining.github.world import Commit, World, oid

pytestmark = pytest.mark.anyio

MERGED_AT = datetime(2025, 11, 1, 12, 0, 5, tzinfo=UTC)


async def complete(session: Session, *records: CommitRecord) -> list[CompletedRecord]:
    return [each async for each in complete_records(records, session.client)]


def third_era(number: int, repository: str = "made/one") -> CommitRecord:
    """Return a record as the archive has it since October 2025: a number and nothing else."""
    return CommitRecord(repository, "", pull_request=PullRequest(number, "", ""))


async def test_a_number_becomes_a_whole_record(tmp_path: Path) -> None:
    world = World()
    pull = world.add("made/one", stars=321).add_merged(9, title="Move it", body="all", additions=7)
    async with github(world, tmp_path) as session:
        (done,) = await complete(session, third_era(9))
    assert done.record == CommitRecord(
        "made/one",
        pull.merged_by or "",
        pull_request=PullRequest(9, "Move it", "all"),
        stars=321,
        files=60,
        additions=7,
        deletions=900,
        date=MERGED_AT,
        licence="MIT",
    )
    assert done.outcome is ApiOutcome.COMPLETED


async def test_what_the_source_knows_stays(tmp_path: Path) -> None:
    world = World()
    world.add("made/one", stars=321).add_merged(9, title="now", body="now")
    known = CommitRecord(
        "MADE/one",
        "a" * 40,
        base="b" * 40,
        pull_request=PullRequest(9, "then", ""),
        stars=90,
        additions=5,
        date=datetime(2025, 1, 1, tzinfo=UTC),
        licence="ISC",
        source="an hour",
    )
    async with github(world, tmp_path) as session:
        (done,) = await complete(session, known)
    assert done.record == replace(known, files=60, deletions=900)


async def test_a_commit_gets_message_sizes_date_and_pull_request(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one")
    pull = repository.add_merged(4, title="Split")
    alone = repository.add_commit("alone", message="tidy up", additions=3, deletions=2, files=None)
    async with github(world, tmp_path) as session:
        merged, single = await complete(
            session, CommitRecord("made/one", pull.merged_by or ""), CommitRecord("made/one", alone.oid)
        )
    assert merged.record.text == "Split\n\nSplits it into modules."
    assert merged.record.message == "Refactor (#4)"
    assert (single.record.text, single.record.pull_request) == ("tidy up", None)
    assert (single.record.files, single.record.additions, single.record.deletions) == (None, 3, 2)
    assert single.record.date == datetime(2025, 11, 1, 12, tzinfo=UTC)


async def test_records_that_lack_only_stars_share_one_lookup_of_their_repository(tmp_path: Path) -> None:
    world = World()
    world.add("made/one", stars=55, licence=None)
    record = CommitRecord(
        "made/one", "a" * 40, message="m", files=1, additions=1, deletions=1, date=MERGED_AT
    )
    records = [replace(record, golden=oid(number)) for number in range(300)]
    whole = replace(record, stars=1, licence="MIT")
    async with github(world, tmp_path) as session:
        done = await complete(session, *records, whole)
        assert len(session.hub.requests) == 1
        assert session.hub.bodies[0]["variables"] == {"o0": "made", "n0": "one"}
    assert {each.record.stars for each in done[:-1]} == {55}
    assert done[-1] == CompletedRecord(whole, ApiOutcome.COMPLETED)


async def test_every_outcome_is_named_and_the_order_stays(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one")
    repository.add_merged(1)
    repository.add_merged(2, merged=False)
    repository.add_merged(3).merged_by = None
    world.add("made/new").add_merged(1)
    world.renames["made/old"] = "made/new"
    world.add("made/shut", forbidden="Repository access blocked")
    records = [
        third_era(1),
        third_era(2),
        third_era(3),
        third_era(4),
        third_era(1, "made/old"),
        third_era(1, "made/gone"),
        third_era(1, "made/shut"),
        third_era(1, "no repository"),
        CommitRecord("made/one", ""),
    ]
    async with github(world, tmp_path) as session:
        done = await complete(session, *records)
    assert [each.outcome.value for each in done] == [
        "completed",
        "not merged",
        "no commit",
        "not found",
        "renamed",
        "deleted",
        "refused",
        "invalid",
        "invalid",
    ]
    assert done[4].record.repository == "made/new"
    assert done[4].detail == "made/old is made/new now"
    assert done[4].repository is not None
    assert all(each.detail for each in done[1:])
    incomplete = [each for each in done if each.outcome in {ApiOutcome.DELETED, ApiOutcome.REFUSED}]
    assert [each.record for each in incomplete] == records[5:7]


async def test_a_rebased_pull_request_begins_before_its_first_commit(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one")
    base = repository.add_commit("base", authored="2025-01-01T00:00:00Z")
    dates = [f"2025-10-0{day}T00:00:00Z" for day in (1, 2, 3)]
    pull = repository.add_merged(7, additions=30, deletions=0)
    del repository.commits[pull.merged_by or ""]
    pull.commits = [oid(f"branch {date}") for date in dates]
    for number, (name, date) in enumerate(zip(pull.commits, dates, strict=True)):
        world.detached[name] = Commit(name, authored=date)
        last = repository.add_commit(f"rebased {number}", authored=date, additions=10, deletions=0)
    pull.merged_by = last.oid
    squashed = repository.add_merged(8, additions=30, deletions=0)
    squashed.commits = pull.commits
    repository.commits[squashed.merged_by or ""].additions = 29
    async with github(world, tmp_path) as session:
        first, second = await complete(session, third_era(7), third_era(8))
    assert (first.record.golden, first.record.base) == (last.oid, base.oid)
    assert (second.outcome, second.record.base) == (ApiOutcome.COMPLETED, None)


async def test_without_a_token_the_first_records_are_completed_and_the_others_counted(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one", stars=77)
    commit = repository.add_commit("one", message="tidy")
    for number in range(1, 80):
        repository.add_merged(number)
    records = [CommitRecord("made/one", commit.oid), *(third_era(number) for number in range(1, 80))]
    async with github(world, tmp_path, token="") as session:
        done = await complete(session, *records)
    assert done[0].record.stars == 77
    assert Counter(each.outcome.value for each in done) == {"completed": 59, "no token": 21}
    assert done[-1].record == records[-1]


async def test_a_run_that_failed_continues_without_asking_again(tmp_path: Path) -> None:
    world = World()
    repository = world.add("made/one")
    for number in range(1, 101):
        repository.add_merged(number)
    records = [third_era(number) for number in range(1, 101)]
    async with serving(world) as hub:
        async with connected(hub, tmp_path, batch=10, in_flight=1) as session:
            hub.limits.clear()
            await complete(session, *records[:30])
            hub.faults.extend([bad_gateway] * 1000)
            done = await complete(session, *records)
            assert Counter(each.outcome.value for each in done) == {"completed": 30, "unavailable": 70}
        hub.faults.clear()
        hub.requests.clear()
        async with connected(hub, tmp_path) as session:
            done = await complete(session, *records)
        assert {each.outcome for each in done} == {ApiOutcome.COMPLETED}
        assert hub.requests == ["POST /graphql"] * 2


@pytest.mark.parametrize(
    ("change", "date", "files"),
    [
        ({}, "2025-11-01T12:00:00+00:00", 60),
        ({"commit": {"committer": None}}, "2025-10-30T08:00:00+00:00", 60),
        ({"commit": {"committer": {"name": "a"}}}, "2025-10-30T08:00:00+00:00", 60),
        ({"commit": {"committer": None, "author": None}, "author": None}, None, 60),
        ({"files": None}, "2025-11-01T12:00:00+00:00", None),
    ],
)
async def test_a_commit_without_a_person_is_complete(
    change: dict[str, Any], date: str | None, files: int | None, tmp_path: Path
) -> None:
    world = World()
    commit = world.add("made/one").add_commit("root")
    status, body = rest_api.answer(world, f"/repos/made/one/commits/{commit.oid}")
    assert status == 200
    body = {**body, **change, "commit": {**body["commit"], **change.get("commit", {})}}
    async with github(world, tmp_path, token="") as session:
        session.hub.faults.append(raw(200, json.dumps(body).encode()))
        (done,) = await complete(session, CommitRecord("made/one", commit.oid))
    assert done.outcome is ApiOutcome.COMPLETED
    assert (done.record.date and done.record.date.isoformat()) == date
    assert (done.record.files, done.record.message) == (files, "a commit")
