"""All trials, with filters by agent, setting, outcome, language and label; and what could not be read."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.site.html.data_files import csv_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.overview.trial_rows import COLUMNS, trial_rows, trials_csv

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.site import Site

ADDRESS = "trials/index.html"
PROBLEMS_ADDRESS = "problems/index.html"
_DATA = "trials/trials.csv"
_PROBLEMS_DATA = "problems/problems.csv"


def all_trials_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of all trials, and its data."""
    yield SiteFile(ADDRESS, partial(_page, site))
    yield SiteFile(_DATA, lambda: trials_csv(trial_rows(site, site.trials)))


def problems_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of what could not be read, and its data."""
    yield SiteFile(PROBLEMS_ADDRESS, partial(_problems_page, site))
    yield SiteFile(_PROBLEMS_DATA, partial(_problems_data, site))


def _page(site: Site) -> bytes:
    rows = trial_rows(site, site.trials)
    return render_page(
        site, "overview/trials.html", ADDRESS, "Trials", data=[("CSV", _DATA)], rows=rows, columns=COLUMNS
    )


def _problems_page(site: Site) -> bytes:
    return render_page(
        site,
        "overview/problems.html",
        PROBLEMS_ADDRESS,
        "Problems",
        data=[("CSV", _PROBLEMS_DATA)],
        problems=site.problems,
        merge_notes=site.results.trials.notes,
    )


def _problems_data(site: Site) -> bytes:
    rows = [(problem.location, str(problem.kind), problem.text) for problem in site.problems]
    rows += [("", "note", note) for note in site.results.trials.notes]
    return csv_file(("location", "kind", "text"), rows)
