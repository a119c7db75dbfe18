"""The coverage says of each hour what it gives, and what is known of the archive at that time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.errors import ConfigError
from codetaste.mining.archive.coverage import HourState, coverage_of
from codetaste.mining.archive.hour import find_hour_files, hour_name, hour_of, hours_between
from codetaste.mining.archive.hour_summary import HourSummary
from codetaste.mining.archive.known_holes import known_hole

START = datetime(2023, 4, 5, 22, tzinfo=UTC)


def summary(hour: datetime | None, lines: int = 1000, torn: str = "", trimmed: int = 0) -> HourSummary:
    return HourSummary(
        file=Path("hour"),
        size=1,
        changed_ns=1,
        hour=hour,
        records=Path("records"),
        lines=lines,
        merged=lines // 10,
        trimmed=trimmed,
        torn=torn,
    )


def at(offset: int) -> datetime:
    return START + timedelta(hours=offset)


def test_each_hour_has_its_state() -> None:
    found = [
        summary(at(0)),
        summary(at(1)),
        summary(at(3), lines=99),
        summary(at(4), torn="the gzip data ends too early"),
        summary(at(5), trimmed=3),
        summary(None),
    ]
    coverage = coverage_of(found, last=at(6))
    assert [hour.state for hour in coverage.hours] == [
        HourState.COMPLETE,
        HourState.COMPLETE,
        HourState.MISSING,
        HourState.NEARLY_EMPTY,
        HourState.TORN,
        HourState.TRIMMED,
        HourState.MISSING,
    ]
    assert coverage.count(HourState.MISSING) == 2
    assert coverage.unnamed == 1
    assert [span.describe() for span in coverage.spans()][:3] == [
        "2023-04-05-22 to 2023-04-05-23: complete (2 hours, 2,000 events, 200 merged pull requests)",
        "2023-04-06-0: missing (1 hour, 0 events, 0 merged pull requests)",
        "2023-04-06-1: nearly empty (1 hour, 99 events, 9 merged pull requests)",
    ]


def test_known_hole_is_named() -> None:
    coverage = coverage_of([], datetime(2019, 9, 12, tzinfo=UTC), datetime(2019, 9, 13, 23, tzinfo=UTC))
    [span] = coverage.spans()
    assert span.hours == 48
    assert span.describe().endswith("; no events were recorded on 2019-09-12 and 13")


@pytest.mark.parametrize(
    ("hour", "note"),
    [
        ("2019-09-11T23:00", ""),
        ("2020-08-23T23:00", "no events were recorded from 2020-08-21 to 23"),
        ("2021-10-07T05:00", "no events were recorded on 2021-10-07"),
        ("2021-10-26T23:00", "no events were recorded from 2021-10-22 to 26"),
        ("2021-10-27T00:00", ""),
        ("2025-06-01T00:00", "most events are missing since May 2025"),
        ("2025-10-09T00:00", "nearly no events were recorded from 2025-10-09 to 14"),
    ],
)
def test_holes_begin_and_end_at_their_hours(hour: str, note: str) -> None:
    assert known_hole(datetime.fromisoformat(hour).replace(tzinfo=UTC)) == note


def test_hours_from_2025_10_07_on_are_trimmed() -> None:
    assert coverage_of([summary(datetime(2025, 10, 7, tzinfo=UTC))]).hours[0].state == HourState.TRIMMED


def test_nothing_read_covers_nothing() -> None:
    assert coverage_of([]).spans() == []


@given(st.sets(st.integers(0, 60)), st.integers(0, 60), st.integers(0, 60))
def test_every_hour_of_the_time_is_in_one_span(present: set[int], first: int, length: int) -> None:
    coverage = coverage_of([summary(at(each)) for each in present], at(first), at(first + length))
    missing = [each for each in range(first, first + length + 1) if each not in present]
    assert [hour.hour for hour in coverage.hours if hour.state == HourState.MISSING] == list(map(at, missing))
    assert sum(span.hours for span in coverage.spans()) == length + 1


@given(st.datetimes(datetime(2011, 1, 1), datetime(2040, 1, 1)))  # noqa: DTZ001
def test_name_of_an_hour_is_read_back(moment: datetime) -> None:
    hour = moment.replace(minute=0, second=0, microsecond=0, tzinfo=UTC)
    assert hour_of(f"{hour_name(hour)}.json.gz") == hour_of(f"{hour_name(hour)}.json") == hour
    assert list(hours_between(hour, hour)) == [hour]


@pytest.mark.parametrize(
    "name", ["2023-04-05-24.json.gz", "2023-13-05-1.json.gz", "x.json.gz", "2023-04-05.json"]
)
def test_other_names_have_no_hour(name: str) -> None:
    assert hour_of(name) is None


def test_files_folders_and_patterns_name_hours_in_order(tmp_path: Path) -> None:
    names = ["2023-04-05-10.json.gz", "2023-04-05-9.json.gz", "2023-04-05-11.json", "notes.txt"]
    for name in names:
        (tmp_path / name).write_bytes(b"")
    found = find_hour_files([tmp_path, tmp_path / "*-9.json.gz", str(tmp_path / names[0])])
    assert [file.name for file in found] == [names[1], names[0], names[2]]


def test_every_name_without_files_is_a_problem(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        find_hour_files([tmp_path, tmp_path / "gone-*.json.gz"])
    assert len(caught.value.problems) == 2
