"""SWE-Refactor: strategies and models compared by type and project, and the list of all trials."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.report.render.csv import render_csv
from codetaste.site.html.data_files import csv_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.swe_refactor.addresses import COMPARISON, answer_address
from codetaste.site.swe_refactor.run_files import RunFiles
from codetaste.site.swe_refactor.trial_page import answer_file
from codetaste.swe_refactor.report.tables import TRIAL_TABLES, report_tables
from codetaste.swe_refactor.report.trials_file import trial_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.report.table import Table
    from codetaste.site.site import Site

_TABLES_FILE, _TRIALS_FILE = "swe-refactor/tables.csv", "swe-refactor/trials.csv"


def swe_refactor_files(site: Site) -> Iterator[SiteFile]:
    """Yield the comparison with its data, then the page of each trial."""
    yield SiteFile(COMPARISON, partial(_page, site))
    yield SiteFile(_TABLES_FILE, lambda: render_csv(_tables(site)).encode("utf-8", "replace"))
    yield SiteFile(_TRIALS_FILE, partial(_trials_csv, site))
    files = RunFiles(site.results.roots)
    for row in {answer_address(row): row for row in site.results.answers.rows}.values():
        yield answer_file(site, files, row)


def _tables(site: Site) -> list[Table]:
    return report_tables(site.results.answers.rows, [name for name in TRIAL_TABLES if name != "5"])


def _page(site: Site) -> bytes:
    answers = site.results.answers
    return render_page(
        site,
        "swe_refactor/comparison.html",
        COMPARISON,
        "SWE-Refactor",
        data=[("tables (CSV)", _TABLES_FILE), ("trials (CSV)", _TRIALS_FILE)],
        tables=_tables(site),
        notes=answers.notes,
        rows=[(row, answer_address(row)) for row in answers.rows],
    )


def _trials_csv(site: Site) -> bytes:
    rows = [trial_to_json(row) for row in site.results.answers.rows]
    names = [name for name in rows[0] if name != "score"] if rows else []
    return csv_file(names, ([row[name] for name in names] for row in rows))
