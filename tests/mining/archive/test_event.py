"""Events of all three eras become the same record; what is no event is named with its reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.mining.archive.event import ArchivedChange, UnusableEvent, parse_event
from codetaste.mining.commit import CommitRecord, PullRequest
from support.mining.archive_events import (
    MergedChange,
    event_of_2013,
    event_of_2023,
    event_of_2026,
    other_event,
)

CHANGE = MergedChange()


def parse(event: Any) -> ArchivedChange | None:
    return parse_event(json.dumps(event).encode(), "hour")


def test_event_of_2023_has_all_that_a_record_needs() -> None:
    assert parse(event_of_2023(CHANGE)) == ArchivedChange(
        CommitRecord(
            repository="octo/widgets",
            golden="b" * 40,
            pull_request=PullRequest(7, "Restructure the parser", "Split it into modules."),
            stars=120,
            files=60,
            additions=900,
            deletions=800,
            date=datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC),
            licence="MIT",
            source="hour",
        ),
        trimmed=False,
    )


def test_event_before_2015_gives_the_same_record() -> None:
    assert parse(event_of_2013(CHANGE)) == parse(event_of_2023(CHANGE))


def test_event_without_base_repository_is_named_by_its_frame() -> None:
    for event in (event_of_2013(CHANGE), event_of_2023(CHANGE)):
        event["payload"]["pull_request"]["base"]["repo"] = None
        change = parse(event)
        assert change is not None
        assert change.record.repository == "octo/widgets"
    assert change.record.stars is None
    old = event_of_2013(CHANGE)
    del old["payload"]["pull_request"]["base"]
    found = parse(old)
    assert found is not None
    assert found.record.stars == 120


def test_trimmed_event_is_an_incomplete_record() -> None:
    change = parse(event_of_2026(CHANGE))
    assert change is not None
    assert change.trimmed
    assert change.record == CommitRecord(
        repository="octo/widgets",
        golden="",
        pull_request=PullRequest(7, "", ""),
        date=datetime(2023, 4, 5, 6, 7, 8, tzinfo=UTC),
        source="hour",
    )


@pytest.mark.parametrize("make", [event_of_2013, event_of_2023, event_of_2026])
def test_closed_without_a_merge_is_nothing(make: Callable[[MergedChange], dict[str, Any]]) -> None:
    assert parse(make(replace(CHANGE, merged=False))) is None


def test_other_actions_of_trimmed_events_are_nothing() -> None:
    event = event_of_2026(CHANGE)
    event["payload"]["action"] = "opened"
    assert parse(event) is None


def test_date_of_the_merge_stands_for_a_missing_flag() -> None:
    event = event_of_2023(CHANGE)
    del event["payload"]["pull_request"]["merged"]
    assert parse(event) == parse(event_of_2023(CHANGE))


@pytest.mark.parametrize(
    "text", ["2012/03/10 23:51:24 -0800", "2012-03-11T07:51:24Z", "2012-03-11T08:51:24+01:00"]
)
def test_all_forms_of_dates_are_read(text: str) -> None:
    event = event_of_2026(CHANGE)
    event["created_at"] = text
    change = parse(event)
    assert change is not None
    assert change.record.date == datetime(2012, 3, 11, 7, 51, 24, tzinfo=UTC)


def test_lone_surrogates_and_wrong_bytes_become_replacement_characters() -> None:
    line = json.dumps(event_of_2023(replace(CHANGE, title="a\ud83d b", body="\U0001f600"))).encode()
    line = line.replace(b"Widgets for everyone", b"Widgets f\xfcr alle")
    change = parse_event(line, "hour")
    assert change is not None
    assert change.record.pull_request == PullRequest(7, "a\N{REPLACEMENT CHARACTER} b", "\U0001f600")


def test_missing_hash_is_an_incomplete_record() -> None:
    event = event_of_2023(CHANGE)
    event["payload"]["pull_request"]["merge_commit_sha"] = None
    change = parse(event)
    assert change is not None
    assert not change.record.golden
    assert not change.trimmed


@pytest.mark.parametrize(
    ("place", "value", "reason"),
    [
        (
            ("payload", "pull_request", "changed_files"),
            "many",
            "changed_files: Input should be a valid integer",
        ),
        (
            ("payload", "pull_request", "changed_files"),
            True,
            "changed_files: Input should be a valid integer",
        ),
        (("payload", "pull_request", "additions"), -1, "greater than or equal to 0"),
        (("payload", "pull_request", "merged"), "yes", "merged: Input should be a valid boolean"),
        (("payload", "pull_request", "merge_commit_sha"), "HEAD", "merge_commit_sha: String should match"),
        (("payload", "pull_request"), [], "pull_request: Input should be an object"),
        (("payload",), None, "payload: Input should be an object"),
        (("payload", "pull_request", "base", "repo", "full_name"), "../../etc", "no name of a repository"),
        (("type",), 7, "type: Input should be a valid string"),
    ],
)
def test_wrong_value_is_named(place: tuple[str, ...], value: object, reason: str) -> None:
    event: Any = event_of_2023(CHANGE)
    node = event
    for name in place[:-1]:
        node = node[name]
    node[place[-1]] = value
    with pytest.raises(UnusableEvent, match=reason):
        parse(event)


@pytest.mark.parametrize("line", [b"", b"{", b"[]", b"null", b'"PullRequestEvent"', b"{}{}", b"\xff\xfe{}"])
def test_what_is_no_event_is_refused(line: bytes) -> None:
    with pytest.raises(UnusableEvent):
        parse_event(line, "hour")


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(UnusableEvent):
        parse_event(b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}", "hour")


def test_events_of_other_types_are_nothing() -> None:
    event = event_of_2023(CHANGE) | {"type": "PullRequestReviewEvent"}
    assert parse(event) is None
    with pytest.raises(UnusableEvent):
        parse(other_event(4))


@given(st.text(), st.text(), st.integers(0, 2**53), st.booleans())
def test_texts_and_numbers_come_through(title: str, body: str, files: int, merged: bool) -> None:
    change = parse(event_of_2023(replace(CHANGE, title=title, body=body, files=files, merged=merged)))
    assert (change is not None) == merged
    if change is not None:
        assert change.record.pull_request == PullRequest(7, title, body)
        assert change.record.files == files
