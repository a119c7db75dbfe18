"""The difficulty of rules: how many trials satisfy each, by instance, and the hardest ones."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from codetaste.rules.registration import Direction
from codetaste.site.html.data_files import csv_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.site import instance_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.site.overview.rule_tallies import RuleTally
    from codetaste.site.site import Site

ADDRESS = "rules/index.html"
_DATA = "rules/rules.csv"
_MAX_LISTED = 400
_BINS = 10


def rules_files(site: Site) -> Iterator[SiteFile]:
    """Yield the page of all rules, and its data."""
    yield SiteFile(ADDRESS, partial(_page, site))
    yield SiteFile(_DATA, partial(_data, site))


def _page(site: Site) -> bytes:
    tallies = [each for rules in site.rule_tallies.values() for each in rules]
    hardest = sorted(
        (each for each in tallies if each.share is not None),
        key=lambda each: (each.share or 0.0, each.instance, each.direction, each.rule),
    )
    return render_page(
        site,
        "overview/rules.html",
        ADDRESS,
        "Rules",
        data=[("CSV of all rules", _DATA)],
        number=len(tallies),
        judged=len(hardest),
        listed=hardest[:_MAX_LISTED],
        histograms=[(str(each), *_histogram(tallies, str(each))) for each in Direction],
        instance_address=instance_address,
    )


def _histogram(tallies: list[RuleTally], direction: str) -> tuple[list[tuple[str, int]], int]:
    """Return how many rules of a direction a tenth of the trials satisfies, two tenths …, and the most."""
    counts = [0] * _BINS
    for each in tallies:
        if each.direction == direction and each.share is not None:
            counts[min(_BINS - 1, int(each.share * _BINS))] += 1
    names = [f"{10 * number}–{10 * (number + 1)} %" for number in range(_BINS)]
    return list(zip(names, counts, strict=True)), max(1, *counts)


def _data(site: Site) -> bytes:
    header = ("page", "instance", "direction", "rule", "trials", "satisfied", "flagged", "golden", "guessed")
    rows = [
        (
            f"{instance_address(each.instance)}#{each.anchor}",
            *(each.instance, each.direction, each.rule, each.trials, each.satisfied, each.flagged),
            each.golden,
            " ".join(each.guessed),
        )
        for rules in site.rule_tallies.values()
        for each in rules
    ]
    return csv_file(header, rows)
