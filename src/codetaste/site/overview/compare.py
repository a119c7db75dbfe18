"""Pages of pairs of systems, and the page on which any two are chosen."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.power import POWER
from codetaste.report.tables.scores import measure_column
from codetaste.site.html.data_files import csv_file
from codetaste.site.html.site_file import SiteFile, data_script
from codetaste.site.html.templates import render_page
from codetaste.site.overview.pairs import (
    MEASURES,
    PairVerdict,
    compare_pair,
    sides_of,
    systems_of,
    tested_pairs,
)
from codetaste.site.site import instance_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.overview.pairs import Pair
    from codetaste.site.site import Site

ADDRESS = "compare/index.html"
_SCRIPT_DATA = "compare/systems.js"
_MAX_PAGES = 200
"""More pairs than this have no page of their own; the page of any two shows them, and says so."""


def compare_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of any two, its data, and a page for each pair that is tested."""
    yield SiteFile(ADDRESS, partial(_index_page, site))
    yield SiteFile(_SCRIPT_DATA, partial(_script_data, site))
    for pair in _pairs(site):
        yield SiteFile(pair.address, partial(_page, site, pair))
        yield SiteFile(_data_address(pair), partial(_data, site, pair))


def _pairs(site: Site) -> list[Pair]:
    """Return the tested pairs that have a page."""
    return list(islice(tested_pairs(site), _MAX_PAGES))


def _index_page(site: Site) -> bytes:
    primary = site.views[Aggregation.STRICT].primary_measure
    rows = [
        (pair, compared, next((each for each in compared.differences if each.measure == primary), None))
        for pair in _pairs(site)
        for compared in [site.once(compare_pair, pair)]
    ]
    return render_page(
        site,
        "pair/any_two.html",
        ADDRESS,
        "Compare",
        data=[("values of all systems (script)", _SCRIPT_DATA)],
        rows=rows,
        tested=sum(1 for _ in tested_pairs(site)),
        systems=systems_of(site),
        primary=primary,
        agreements=list(PairVerdict),
        column=measure_column(primary),
        power=POWER,
    )


def _page(site: Site, pair: Pair) -> bytes:
    compared = site.once(compare_pair, pair)
    return render_page(
        site,
        "pair/pair.html",
        pair.address,
        f"{pair.first.title} and {pair.second.title}",
        crumbs=[("Leaderboard", "index.html"), ("Compare", ADDRESS)],
        data=[("CSV", _data_address(pair))],
        compared=compared,
        pair=pair,
        measures=MEASURES,
        columns=[measure_column(measure) for measure in MEASURES],
        primary=site.views[Aggregation.STRICT].primary_measure,
        power=POWER,
        agreements=list(PairVerdict),
        instance_address=instance_address,
    )


def _data_address(pair: Pair) -> str:
    return pair.address.replace("index.html", "pair.csv")


def _data(site: Site, pair: Pair) -> bytes:
    names = [measure.name for measure in MEASURES]
    header = ("instance", "agreement", "effect", "page_first", "page_second")
    rows = [
        (
            row.instance,
            str(row.agreement) if row.agreement else None,
            row.effect,
            row.first.address,
            row.second.address,
            *row.first.values,
            *row.second.values,
        )
        for row in site.once(compare_pair, pair).rows
    ]
    return csv_file(
        (*header, *(f"{name}_first" for name in names), *(f"{name}_second" for name in names)), rows
    )


def _script_data(site: Site) -> bytes:
    """Return the values of all systems, by which a script shows any two."""
    systems = []
    for system in systems_of(site):
        sides = site.once(sides_of, system).items()
        systems.append(
            {
                "key": system.key,
                "title": system.title,
                "agent": system.agent,
                "setting": system.setting.title,
                "instances": {name: [side.address, *side.values, side.right] for name, side in sides},
            }
        )
    pairs = {f"{pair.first.key}--{pair.second.key}": pair.address for pair in _pairs(site)}
    value = {
        "measures": [measure.title for measure in MEASURES],
        "primary": MEASURES.index(site.views[Aggregation.STRICT].primary_measure),
        "systems": systems,
        "pairs": pairs,
        "instances": {name: instance_address(name) for name in site.trials_by_instance},
    }
    return data_script("systems", value)
