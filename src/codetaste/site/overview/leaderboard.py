"""The leaderboard: agents by track and mode, with intervals and places, under both aggregations."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.intervals import Interval, Method
from codetaste.report.tables.comparison import comparison_table
from codetaste.report.tables.scores import measure_column
from codetaste.results.outcome import OutcomeFacet
from codetaste.site.html.address import file_name
from codetaste.site.html.data_files import csv_file
from codetaste.site.html.site_file import SiteFile
from codetaste.site.html.templates import render_page
from codetaste.site.overview.places import Place, find_places
from codetaste.site.overview.scatter.drawing import Observation, draw_scatters
from codetaste.site.site import agent_address, setting_address, setting_name
from codetaste.site.swe_refactor.addresses import COMPARISON
from codetaste.swe_refactor.report.tables import report_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.merge import TrackMode
    from codetaste.site.site import Site

ADDRESS = "index.html"
PAGES = {Aggregation.STRICT: ADDRESS, Aggregation.PUBLISHED: "published.html"}
SHOWN = (measures.ALIGNMENT, measures.PASS, measures.IFR, measures.PREC)
SPENT = (measures.COST,)
_ANSWER_TABLES = ("ranking", "strategies")
"""Of a site that has trials of SWE-Refactor only: strategies and models with intervals."""
_MAX_SOURCES = 6
"""Runs or benchmarks that are named."""
_NO_INTERVAL = Interval(None, None, None, 0, 0, Method.NONE)
_HEADER = (
    "address",
    "aggregation",
    "agent",
    "setting",
    "place",
    "measure",
    "unit",
    "mean",
    "low",
    "high",
    "n",
    "clusters",
    "method",
)


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the leaderboard that can be cited by its address."""

    id: str
    measure: Measure
    interval: Interval


@dataclass(frozen=True, slots=True)
class Standing:
    """An agent in one track and mode."""

    agent: str
    letter: str
    setting: str
    place: Place | None
    beats: tuple[str, ...]
    numbers: tuple[Number, ...]
    trials: int
    not_scored: int
    facets: Mapping[OutcomeFacet, int]


def leaderboard_files(site: Site) -> Iterator[SiteFile]:
    """Yield a page for each aggregation, and its data."""
    if not site.views:
        yield SiteFile(ADDRESS, partial(_page_without_trials, site))
        return
    for aggregation, address in PAGES.items():
        yield SiteFile(address, partial(_page, site, aggregation))
        yield SiteFile(_data_address(aggregation), partial(_data, site, aggregation))


def standings(site: Site, aggregation: Aggregation) -> list[Standing]:
    """Return all agents in all settings, by setting, then by place."""
    comparison, view = site.comparisons[aggregation], site.views[aggregation]
    made: list[Standing] = []
    for track_mode in view.trials.track_modes:
        setting = track_mode.title
        places = find_places(comparison, setting)
        for agent in [*places, *(each for each in comparison.systems if each not in places)]:
            trials = view.trials_of(agent, track_mode)
            if not trials:
                continue
            estimate = comparison.estimate(agent, setting, comparison.primary)
            made.append(
                Standing(
                    agent,
                    comparison.letter(agent),
                    setting,
                    places.get(agent),
                    estimate.beats if estimate else (),
                    tuple(_numbers(site, aggregation, agent, track_mode)),
                    len(trials),
                    sum(trial.scores.status is not TrialStatus.SCORED for trial in trials),
                    Counter(map(site.facet, trials)),
                )
            )
    return made


def _numbers(site: Site, aggregation: Aggregation, agent: str, track_mode: TrackMode) -> Iterator[Number]:
    comparison, view = site.comparisons[aggregation], site.views[aggregation]
    place = f"{file_name(agent)}.{setting_name(track_mode.title)}"
    for measure in SHOWN:
        estimate = comparison.estimate(agent, track_mode.title, measure)
        yield Number(f"{place}.{measure.name}", measure, estimate.interval if estimate else _NO_INTERVAL)
    for measure in SPENT:
        interval = view.interval(view.trials_of(agent, track_mode), measure)
        yield Number(f"{place}.{measure.name}", measure, interval)


def _page(site: Site, aggregation: Aggregation) -> bytes:
    comparison = site.comparisons[aggregation]
    listed = standings(site, aggregation)
    settings = [each.title for each in site.views[aggregation].trials.track_modes]
    observations = [
        Observation(
            f"{each.agent}, {each.setting}",
            f"{each.letter}{settings.index(each.setting) + 1}",
            settings.index(each.setting),
            agent_address(each.agent),
            _interval(each, measures.COST),
            _interval(each, comparison.primary),
        )
        for each in listed
    ]
    return render_page(
        site,
        "overview/leaderboard.html",
        PAGES[aggregation],
        "Leaderboard",
        data=((f"{aggregation} numbers (CSV)", _data_address(aggregation)),),
        aggregation=aggregation,
        pages=PAGES,
        comparison=comparison,
        standings=listed,
        settings=settings,
        references=[each for each in comparison.references if each.measure == comparison.primary],
        facets=[facet for facet in OutcomeFacet if any(facet in each.facets for each in listed)],
        columns={measure.name: measure_column(measure) for measure in (*SHOWN, *SPENT)},
        measures=(*SHOWN, *SPENT),
        notes=comparison_table(comparison, better_than="better than").notes,
        scatters=draw_scatters(observations),
        lede=_describe(site),
        sources=_sources(site),
        agent_address=agent_address,
        setting_address=setting_address,
    )


def _page_without_trials(site: Site) -> bytes:
    answers = site.results.answers.rows
    return render_page(
        site,
        "overview/no_trials.html",
        ADDRESS,
        "Overview",
        lede=_describe(site),
        tables=report_tables(answers, _ANSWER_TABLES) if answers else (),
        comparison_page=COMPARISON,
    )


def _describe(site: Site) -> str:
    results, trials = site.results, site.results.trials.agents
    counts = [
        plural(len(trials), "trial") if trials else "",
        plural(len(results.trials.agent_names), "agent") if trials else "",
        plural(len({trial.instance for trial in trials}), "instance") if trials else "",
        plural(len(results.answers.rows), "trial") + " of SWE-Refactor" if results.answers.rows else "",
        plural(len(results.passes), "discovery pass", "discovery passes") if results.passes else "",
        plural(len(results.environments), "environment") if results.environments else "",
    ]
    return ", ".join(filter(None, counts)) or "no trial yet"


def _sources(site: Site) -> list[tuple[str, str]]:
    """Return of what benchmarks the trials are, of which runs, and of which days, as far as it is known."""
    benchmarks = [each.root.name for each in site.results.benchmarks.opened]
    runs = list(dict.fromkeys(trial.run for trial in site.results.trials.agents))
    sources = [
        ("Benchmarks" if len(benchmarks) > 1 else "Benchmark", _listed(benchmarks)),
        ("Runs" if len(runs) > 1 else "Run", _listed(runs)),
        ("Days (UTC)", " to ".join(dict.fromkeys(site.days))),
    ]
    return [(title, text) for title, text in sources if text]


def _listed(names: Sequence[str]) -> str:
    """Return names with commas, and the number of those that are left out."""
    more = f" and {len(names) - _MAX_SOURCES} more" if len(names) > _MAX_SOURCES else ""
    return f"{', '.join(names[:_MAX_SOURCES])}{more}"


def _interval(standing: Standing, measure: Measure) -> Interval:
    return next((each.interval for each in standing.numbers if each.measure == measure), _NO_INTERVAL)


def _data_address(aggregation: Aggregation) -> str:
    return f"leaderboard-{aggregation}.csv"


def _data(site: Site, aggregation: Aggregation) -> bytes:
    page = PAGES[aggregation]
    rows = [
        (
            f"{page}#{number.id}",
            str(aggregation),
            each.agent,
            each.setting,
            each.place.number if each.place else None,
            number.measure.name,
            str(number.measure.unit),
            number.interval.mean,
            number.interval.low,
            number.interval.high,
            number.interval.n,
            number.interval.clusters,
            str(number.interval.method),
        )
        for each in standings(site, aggregation)
        for number in each.numbers
    ]
    return csv_file(_HEADER, rows)
