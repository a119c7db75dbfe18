"""The list of instances, and a page for each: description, rules, golden patch, all its trials."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from codetaste.benchmark.layout import Track
from codetaste.errors import ConfigError
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.tables.scores import measure_column
from codetaste.results.outcome import OutcomeFacet
from codetaste.site.html.data_files import csv_file, json_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.overview.trial_rows import COLUMNS, trial_rows, trials_csv
from codetaste.site.site import instance_address, instance_folder
from codetaste.site.trial.reference import find_references, golden_download, rule_texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.benchmark.instance import Instance
    from codetaste.report.statistics.intervals import Interval
    from codetaste.site.site import Site
    from codetaste.site.trial.reference import Reference

ADDRESS = "instances/index.html"
_DATA = "instances/list.csv"
_MEASURES = (measures.ALIGNMENT, measures.PASS, measures.IFR, measures.PREC)
_MAX_DESCRIPTION = 60_000
_MAX_RULES = 1_000
_TITLES = {Track.INSTRUCTED: "Instructed description", Track.OPEN: "Open description"}


class InstanceRow(NamedTuple):
    """An instance in the list; ``means`` are over all its trials, as ``--by instance`` has them by agent."""

    id: str
    repository: str
    language: str
    category: str
    trials: int
    facets: Counter[OutcomeFacet]
    means: tuple[Interval, ...]
    rules: int


def instances_files(site: Site) -> Iterator[SiteFile]:
    """Yield the list and the page of each instance, with their data."""
    yield SiteFile(ADDRESS, partial(_list_page, site))
    yield SiteFile(_DATA, partial(_list_data, site))
    references = find_references(site)
    for name in site.trials_by_instance:
        folder = instance_folder(name)
        yield SiteFile(instance_address(name), partial(_page, site, references[name]))
        yield SiteFile(f"{folder}/trials.csv", partial(_trials_data, site, name))
        yield SiteFile(f"{folder}/rules.csv", partial(_rules_data, site, name))
        yield SiteFile(f"{folder}/descriptions.json", partial(_descriptions_data, site, name))


def instance_rows(site: Site) -> list[InstanceRow]:
    """Return all instances that have trials."""
    view = site.views[Aggregation.STRICT]
    return [
        InstanceRow(
            name,
            trials[0].repository,
            trials[0].language,
            trials[0].category,
            len(trials),
            Counter(map(site.facet, trials)),
            tuple(view.interval(trials, measure) for measure in _MEASURES),
            len(site.rule_tallies.get(name, ())),
        )
        for name, trials in site.trials_by_instance.items()
    ]


def descriptions_of(site: Site, name: str) -> list[tuple[str, str]]:
    """Return the task descriptions of an instance as far as the benchmark has them. Blocking."""
    known = site.results.benchmarks.find(name)
    if known is None:
        return []
    benchmark, instance = known
    found = []
    for track in Track:
        try:
            text = benchmark.description(instance, track)
        except (ConfigError, OSError):
            continue
        cut = f"{text[:_MAX_DESCRIPTION]}\n… {len(text) - _MAX_DESCRIPTION:,} more characters"
        found.append((_TITLES[track], text if len(text) <= _MAX_DESCRIPTION else cut))
    return found


def _list_page(site: Site) -> bytes:
    rows = instance_rows(site)
    return render_page(
        site,
        "overview/instances.html",
        ADDRESS,
        "Instances",
        data=[("CSV", _DATA)],
        rows=rows,
        columns=[measure_column(measure) for measure in _MEASURES],
        facets=[facet for facet in OutcomeFacet if any(row.facets[facet] for row in rows)],
        instance_address=instance_address,
    )


def _list_data(site: Site) -> bytes:
    header = ("page", "instance", "repository", "language", "category", "trials", "rules")
    names = [f"mean_{measure.name}" for measure in _MEASURES]
    rows = [
        (
            instance_address(each.id),
            *(each.id, each.repository, each.language, each.category, each.trials, each.rules),
            *(interval.mean for interval in each.means),
            *(each.facets[facet] for facet in OutcomeFacet),
        )
        for each in instance_rows(site)
    ]
    return csv_file((*header, *names, *map(str, OutcomeFacet)), rows)


def _page(site: Site, reference: Reference) -> bytes:
    name = reference.instance
    folder, trials = instance_folder(name), site.trials_by_instance[name]
    tallies = site.rule_tallies.get(name, [])
    texts = rule_texts(site, reference, trials[0]) if trials else {}
    return render_page(
        site,
        "overview/instance.html",
        instance_address(name),
        name,
        crumbs=[("Leaderboard", "index.html"), ("Instances", ADDRESS)],
        data=[
            ("trials (CSV)", f"{folder}/trials.csv"),
            ("rules (CSV)", f"{folder}/rules.csv"),
            ("descriptions (JSON)", f"{folder}/descriptions.json"),
        ],
        first=trials[0],
        instance=_instance(site, name),
        golden=golden_download(reference),
        descriptions=descriptions_of(site, name),
        tallies=tallies[:_MAX_RULES],
        rules=len(tallies),
        texts=texts,
        rows=trial_rows(site, trials),
        columns=COLUMNS,
        studies=[each for each in site.results.studies.case_studies if each.origin.instance == name],
    )


def _instance(site: Site, name: str) -> Instance | None:
    found = site.results.benchmarks.find(name)
    return found[1] if found else None


def _trials_data(site: Site, name: str) -> bytes:
    return trials_csv(trial_rows(site, site.trials_by_instance[name]))


def _rules_data(site: Site, name: str) -> bytes:
    header = ("page", "instance", "direction", "rule", "trials", "satisfied", "flagged", "golden", "guessed")
    rows = [
        (
            f"{instance_address(name)}#{each.anchor}",
            *(name, each.direction, each.rule, each.trials, each.satisfied, each.flagged, each.golden),
            " ".join(each.guessed),
        )
        for each in site.rule_tallies.get(name, ())
    ]
    return csv_file(header, rows)


def _descriptions_data(site: Site, name: str) -> bytes:
    return json_file({"instance": name, "descriptions": dict(descriptions_of(site, name))})
