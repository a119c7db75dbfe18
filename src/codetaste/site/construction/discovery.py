"""Discovery of rules: models compared, and the list of their passes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.report.discovery.tables import DISCOVERY_TABLES, discovery_tables
from codetaste.report.render.csv import render_csv
from codetaste.site.construction.pass_page import DISCOVERY, pass_file
from codetaste.site.html.address import file_name
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from codetaste.report.discovery.passes import PassRecord
    from codetaste.site.site import Site

__all__ = ["DISCOVERY", "discovery_files", "pass_address"]
_TABLES_FILE = "discovery/tables.csv"


def discovery_files(site: Site) -> Iterator[SiteFile]:
    """Yield the overview, its tables as data, and the page of each pass with the data beside it."""
    yield SiteFile(DISCOVERY, partial(_index, site))
    yield SiteFile(_TABLES_FILE, partial(_tables_csv, site))
    for address, each in _by_address(site).items():
        yield pass_file(site, each, address)


def pass_address(record: PassRecord) -> str:
    """Return the address of the page of a pass; ``#rule-ID`` and ``#rejected-N`` name places in it."""
    names = (record.system, record.instance, record.direction.value)
    return "/".join(["discovery", *map(file_name, names), "index.html"])


def _by_address(site: Site) -> Mapping[str, PassRecord]:
    """Return the passes by the addresses of their pages, in the order of the runs."""
    return {pass_address(each): each for each in reversed(site.results.passes)}


def _index(site: Site) -> bytes:
    passes = site.results.passes
    return render_page(
        site,
        "construction/discovery.html",
        DISCOVERY,
        "Discovered rules",
        data=[("tables (CSV)", _TABLES_FILE)],
        tables=discovery_tables(passes, DISCOVERY_TABLES),
        passes=[(each, pass_address(each)) for each in passes],
    )


def _tables_csv(site: Site) -> bytes:
    return render_csv(discovery_tables(site.results.passes, DISCOVERY_TABLES)).encode("utf-8", "replace")
