"""The navigation of a site."""

from __future__ import annotations

from codetaste.site.build import PARTS
from support.site.results import make_site


def test_each_key_goes_to_one_part() -> None:
    keys = [part.link.key for part in PARTS if part.link is not None]
    assert len(set(keys)) == len(keys)


def test_without_trials_the_first_page_is_no_leaderboard() -> None:
    assert [link.title for link in make_site().sections] == ["Overview"]
