"""All files of a site: its parts, in the order of the navigation."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from codetaste.site.construction.discovery import DISCOVERY, discovery_files
from codetaste.site.construction.environments import ENVIRONMENTS, environment_files
from codetaste.site.construction.mining import MINING, has_mining, mining_files
from codetaste.site.html.site_file import SiteFile
from codetaste.site.overview.compare import ADDRESS as COMPARE_ADDRESS
from codetaste.site.overview.compare import compare_files
from codetaste.site.overview.figures import ADDRESS as FIGURES_ADDRESS
from codetaste.site.overview.figures import figures_files
from codetaste.site.overview.groups import ADDRESS as GROUPS_ADDRESS
from codetaste.site.overview.groups import groups_files
from codetaste.site.overview.instances import ADDRESS as INSTANCES_ADDRESS
from codetaste.site.overview.instances import instances_files
from codetaste.site.overview.leaderboard import leaderboard_files
from codetaste.site.overview.rules import ADDRESS as RULES_ADDRESS
from codetaste.site.overview.rules import rules_files
from codetaste.site.overview.trials import ADDRESS as TRIALS_ADDRESS
from codetaste.site.overview.trials import PROBLEMS_ADDRESS, all_trials_files, problems_files
from codetaste.site.search.pages import ADDRESS as SEARCH_ADDRESS
from codetaste.site.search.pages import search_files
from codetaste.site.site import NavigationLink, Site
from codetaste.site.swe_refactor.addresses import COMPARISON
from codetaste.site.swe_refactor.comparison import swe_refactor_files
from codetaste.site.swe_refactor.construction import CONSTRUCTION, construction_files, has_construction
from codetaste.site.trial.page import trial_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codetaste.results.read import RunResults


class SitePart(NamedTuple):
    """One part of the site.

    Attributes:
        link: its place in the navigation, if it has one.
        files: yields its files, each address once; nothing is made yet.
        exists: whether there is anything to show.
    """

    link: NavigationLink | None
    files: Callable[[Site], Iterator[SiteFile]]
    exists: Callable[[RunResults], bool]


def _has_trials(results: RunResults) -> bool:
    return bool(results.trials.agents)


def _has_trials_of_any_benchmark(results: RunResults) -> bool:
    return bool(results.trials.agents or results.answers.rows)


def _has_words(results: RunResults) -> bool:
    return bool(_has_trials_of_any_benchmark(results) or results.passes)


def _has_problems(results: RunResults) -> bool:
    return bool(results.problems or results.trials.notes)


PARTS = (
    SitePart(NavigationLink("Leaderboard", "index.html", "h"), leaderboard_files, lambda _: True),
    SitePart(NavigationLink("Compare", COMPARE_ADDRESS, "c"), compare_files, _has_trials),
    SitePart(NavigationLink("Trials", TRIALS_ADDRESS, "t"), all_trials_files, _has_trials),
    SitePart(None, trial_files, _has_trials),
    SitePart(NavigationLink("Instances", INSTANCES_ADDRESS, "i"), instances_files, _has_trials),
    SitePart(NavigationLink("Rules", RULES_ADDRESS, "r"), rules_files, _has_trials),
    SitePart(NavigationLink("Groups", GROUPS_ADDRESS, "g"), groups_files, _has_trials),
    SitePart(
        NavigationLink("Discovery", DISCOVERY, "d"), discovery_files, lambda results: bool(results.passes)
    ),
    SitePart(
        NavigationLink("Environments", ENVIRONMENTS, "e"),
        environment_files,
        lambda results: bool(results.environments),
    ),
    SitePart(NavigationLink("Mining", MINING, "m"), mining_files, has_mining),
    SitePart(
        NavigationLink("SWE-Refactor", COMPARISON, "w"),
        swe_refactor_files,
        lambda results: bool(results.answers.rows),
    ),
    SitePart(NavigationLink("Construction", CONSTRUCTION, "n"), construction_files, has_construction),
    SitePart(NavigationLink("Figures", FIGURES_ADDRESS, "f"), figures_files, _has_trials_of_any_benchmark),
    SitePart(NavigationLink("Search", SEARCH_ADDRESS, "s"), search_files, _has_words),
    SitePart(NavigationLink("Problems", PROBLEMS_ADDRESS, "p"), problems_files, _has_problems),
)

_OF_WORDS = "search/"


def open_site(results: RunResults, title: str, *, live: bool = False) -> Site:
    """Return the site of ``results`` with the navigation of the parts that have something to show."""
    links = [part.link for part in PARTS if part.link is not None and part.exists(results)]
    if not _has_trials(results):
        links[0] = links[0]._replace(title="Overview")
    return Site(results, title, tuple(links), live)


def site_blocks(site: Site, size: int) -> Iterator[list[SiteFile]]:
    """Yield every file of the site in blocks, of which one process makes each.

    What needs the same costly numbers and imports is one block, and the search is one; the many pages of
    trials are blocks of ``size``, which come last, so that all processes end at the same time.
    """
    shared = [*_assets()]
    trials: list[SiteFile] = []
    for part in PARTS:
        if part.exists(site.results):
            files = trials if part.files is trial_files else shared
            files += part.files(site)
    yield [file for file in shared if not file.address.startswith(_OF_WORDS)]
    yield [file for file in shared if file.address.startswith(_OF_WORDS)]
    for at in range(0, len(trials), size):
        yield trials[at : at + size]


def site_files(site: Site) -> Iterator[SiteFile]:
    """Yield every file of the site but parts, each address once; nothing is made yet."""
    yield from _assets()
    for part in PARTS:
        if part.exists(site.results):
            yield from part.files(site)


def _assets() -> Iterator[SiteFile]:
    for asset in sorted(files("codetaste.site").joinpath("assets").iterdir(), key=lambda each: each.name):
        yield SiteFile(f"assets/{asset.name}", asset.read_bytes)
