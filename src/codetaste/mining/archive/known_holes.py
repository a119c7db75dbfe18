"""Times in which GH Archive is known to lack events, so that "none found" is not read as "none there"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

FIRST_HOUR = datetime(2011, 2, 12, tzinfo=UTC)
"""The first hour of the archive."""

FIRST_TRIMMED_HOUR = datetime(2025, 10, 7, tzinfo=UTC)
"""From this hour on events of pull requests have no title, text, state of the merge or sizes."""


class KnownHole(NamedTuple):
    """Hours ``first`` to before ``end`` and what is wrong with them."""

    first: datetime
    end: datetime
    note: str


def _days(first: str, last: str, note: str) -> KnownHole:
    start, end = (datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, last))
    return KnownHole(start, end + timedelta(days=1), note)


KNOWN_HOLES = (
    _days("2015-01-01", "2015-12-31", "some hours of 2015 have a single event"),
    _days("2016-01-01", "2016-12-31", "some hours of 2016 are no valid gzip"),
    _days("2019-09-12", "2019-09-13", "no events were recorded on 2019-09-12 and 13"),
    _days("2020-08-21", "2020-08-23", "no events were recorded from 2020-08-21 to 23"),
    _days("2021-10-07", "2021-10-07", "no events were recorded on 2021-10-07"),
    _days("2021-10-22", "2021-10-26", "no events were recorded from 2021-10-22 to 26"),
    _days("2025-10-09", "2025-10-14", "nearly no events were recorded from 2025-10-09 to 14"),
    _days("2025-05-01", "9998-12-31", "most events are missing since May 2025"),
)
"""As reported by users of the archive up to November 2026; the first that holds an hour is named."""


def known_hole(hour: datetime) -> str:
    """Return what is known to be wrong with ``hour``; "" if nothing is."""
    return next((hole.note for hole in KNOWN_HOLES if hole.first <= hour < hole.end), "")
