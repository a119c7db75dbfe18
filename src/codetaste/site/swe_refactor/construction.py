"""How instances of SWE-Refactor were made: in which step each commit and candidate ended, and why."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.errors import ConfigError
from codetaste.report.render.csv import render_csv
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.swe_refactor.build.outcomes import OUTCOMES_FILE, outcome_table, read_outcomes, rows_table
from codetaste.swe_refactor.dataset.layout import FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.results.read import RunResults
    from codetaste.site.site import Site
    from codetaste.swe_refactor.build.outcomes import CandidateOutcome

CONSTRUCTION = "swe-refactor/construction/index.html"
_CANDIDATES_FILE = "swe-refactor/construction/rows.csv"
_MAX_ROWS = 2_000


def has_construction(results: RunResults) -> bool:
    """Return whether one of the runs has built instances."""
    return any((root / FOLDER / OUTCOMES_FILE).is_file() for root in results.roots)


def construction_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page, and all candidates as data."""
    yield SiteFile(CONSTRUCTION, partial(_page, site))
    yield SiteFile(_CANDIDATES_FILE, partial(_candidates_csv, site))


def _page(site: Site) -> bytes:
    outcomes, problems = _read(site)
    return render_page(
        site,
        "swe_refactor/construction.html",
        CONSTRUCTION,
        "Construction of SWE-Refactor",
        data=[("candidates (CSV)", _CANDIDATES_FILE)],
        table=outcome_table(outcomes),
        rows=outcomes[:_MAX_ROWS],
        left_out=max(0, len(outcomes) - _MAX_ROWS),
        problems=problems,
    )


def _candidates_csv(site: Site) -> bytes:
    outcomes, _ = _read(site)
    return render_csv([rows_table(outcomes)]).encode("utf-8", "replace")


def _read(site: Site) -> tuple[list[CandidateOutcome], list[str]]:
    """Return the outcomes of all runs, and why some are missing."""
    outcomes: list[CandidateOutcome] = []
    problems: list[str] = []
    for root in site.results.roots:
        path = root / FOLDER / OUTCOMES_FILE
        if path.is_file():
            try:
                outcomes += read_outcomes(path)
            except ConfigError as error:
                problems += error.problems
    return outcomes, problems
