"""All files of a site."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

from codetaste.site.html.site_file import SiteFile
from codetaste.site.overview.leaderboard import leaderboard_files
from codetaste.site.trial.page import trial_files

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.site import Site


def site_files(site: Site) -> Iterator[SiteFile]:
    """Yield every file of the site but parts, each address once; nothing is made yet."""
    yield from _assets()
    yield from leaderboard_files(site)
    yield from trial_files(site)


def _assets() -> Iterator[SiteFile]:
    for asset in sorted(files("codetaste.site").joinpath("assets").iterdir(), key=lambda each: each.name):
        yield SiteFile(f"assets/{asset.name}", asset.read_bytes)
