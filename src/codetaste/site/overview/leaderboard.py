"""The leaderboard: agents by track and mode, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.site import trial_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.site import Site

ADDRESS = "index.html"


def leaderboard_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page, and its data."""
    yield SiteFile(ADDRESS, lambda: _page(site))


def _page(site: Site) -> bytes:
    trials = [(trial, trial_address(trial)) for trial in site.results.trials.agents]
    return render_page(site, "leaderboard.html", ADDRESS, "Leaderboard", trials=trials)
