"""Comparison tables: agents by track and mode, with intervals and significant differences."""

from __future__ import annotations

from dataclasses import asdict, replace
from operator import attrgetter
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from codetaste.core.text import plural
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.comparison import ALPHA, COMPARED_MEASURES, Comparison, compare_systems
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.merge import merge_runs
from codetaste.report.statistics.power import POWER, describe_detectable
from codetaste.report.statistics.view import aggregate_trials
from codetaste.report.table import Cell, Column, Row, Table, interval_legend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.comparison import ComparisonAxis, PairwiseTest
    from codetaste.report.statistics.measures import Measure

_MAX_DIFFERENCES = 12
"""Significant differences that are listed below the table."""


def compare(
    records: Iterable[TrialRecord],
    *,
    aggregation: Aggregation | Literal["strict", "published", "both"] = "both",
    by: ComparisonAxis = "agent",
) -> Comparison:
    """Compare agents in each track and mode, or with ``by="track_mode"`` the tracks and modes of each agent.

    With both aggregations the result is the strict comparison, whose field ``published`` has the other one.
    """
    trials = merge_runs(records)
    if aggregation != "both":
        return compare_systems(aggregate_trials(trials, Aggregation(aggregation)), by)
    strict, published = (compare_systems(aggregate_trials(trials, each), by) for each in Aggregation)
    return replace(strict, published=published)


def comparison_table(comparison: Comparison, *, better_than: str = ">") -> Table:
    """Return a table with a section for each measure, a row for each system and columns for each setting.

    ``better_than`` is the title of the columns that have the letters of those that are worse.
    """
    agents = comparison.by == "agent"
    columns = [Column(comparison.by, "Agent" if agents else "Mode"), Column("sign", "")]
    for setting in comparison.settings:
        columns += [
            Column("mean", "mean", Unit.FRACTION, heading=setting),
            Column("better_than", better_than, heading=setting),
            Column("n", "n", Unit.COUNT, heading=setting),
        ]
    with_values = {estimate.measure for estimate in comparison.estimates}
    with_values |= {reference.measure for reference in comparison.references}
    measures = [measure for measure in COMPARED_MEASURES if measure in with_values]
    rows = tuple(row for measure in measures for row in _rows(comparison, measure))
    what = "agents by track and mode" if agents else "tracks and modes by agent"
    instances = plural(comparison.instances, "instance")
    repositories = plural(comparison.repositories, "repository", "repositories")
    title = f"{what}; {plural(comparison.trials, 'trial')} of {instances} in {repositories}"
    notes = (*_notes(comparison, better_than), *interval_legend(rows), *comparison.notes)
    name = "comparison" if agents else "modes"
    return Table(name, title, tuple(columns), rows, notes, comparison.aggregation, "measure")


def _rows(comparison: Comparison, measure: Measure) -> list[Row]:
    section = f"{measure.title} (%)"
    between = "" if len(comparison.systems) <= len(ascii_lowercase) else " "
    rows = []
    for system in comparison.systems:
        cells: list[Cell] = []
        for setting in comparison.settings:
            if estimate := comparison.estimate(system, setting, measure):
                beats = between.join(comparison.letter(other) for other in estimate.beats)
                cells += [estimate.interval, beats, estimate.interval.n]
            else:
                cells += [None, "", 0]
        rows.append(Row((system, comparison.letter(system), *cells), section))
    known = {(each.name, each.setting): each for each in comparison.references if each.measure == measure}
    for name in dict.fromkeys(name for name, _ in known):
        found = [known.get((name, setting)) for setting in comparison.settings]
        cells = [cell for each in found for cell in ((each.mean, "", each.n) if each else (None, "", 0))]
        rows.append(Row((name, "", *cells), section))
    return rows


def _notes(comparison: Comparison, better_than: str) -> list[str]:
    """Return notes on the ranking, the meaning of the letters, and the significant differences."""
    tests = len(comparison.tests)
    if not comparison.estimates:
        return ["no trial has a value for these measures"]
    if not tests:
        return ["no two of them can be compared"]
    ranked = f"letters in the order of the mean of {comparison.primary.title} over tracks and modes; "
    ranked = ranked if comparison.by == "agent" else ""
    corrected = f"{ALPHA:.0%} false discoveries among {tests:,} paired sign-flip tests by repository"
    notes = [f"{ranked}{better_than}: significantly better than these ({corrected}, Benjamini-Hochberg)"]
    listed = [each for each in comparison.tests if each.measure == comparison.primary and each.significant]
    listed.sort(key=lambda each: (each.q, -abs(each.difference)))
    notes += [_format_difference(each) for each in listed[:_MAX_DIFFERENCES]]
    if len(listed) > _MAX_DIFFERENCES:
        notes.append(
            f"and {len(listed) - _MAX_DIFFERENCES} more significant differences of {comparison.primary.title}"
        )
    if not any(each.significant for each in comparison.tests):
        notes.append("no difference is significant")
    return [*notes, *_detectable(comparison)]


def _detectable(comparison: Comparison) -> Iterator[str]:
    """Yield the smallest difference of the primary measure that each setting's pairs could show."""
    ranges = [
        f"{setting} {text}"
        for setting in comparison.settings
        if (
            text := describe_detectable(
                each.detectable
                for each in comparison.tests
                if (each.setting, each.measure) == (setting, comparison.primary)
            )
        )
    ]
    if ranges:
        yield (
            f"smallest difference of {comparison.primary.title} that so many pairs would show"
            f" ({POWER:.0%} power, before correction): {', '.join(ranges)}"
        )


def _format_difference(test: PairwiseTest) -> str:
    first, second = (test.first, test.second)[:: 1 if test.difference > 0 else -1]
    return (
        f"{test.setting}: {first} is {abs(test.difference) * 100:.1f} points of {test.measure.title}"
        f" better than {second} (p = {test.q:.2g} corrected, {test.pairs} pairs)"
    )


def differences_table(comparison: Comparison) -> Table:
    """Return a table with a row for each paired test."""
    columns = (
        Column("setting", "Track and mode" if comparison.by == "agent" else "Agent"),
        Column("first", "First"),
        Column("second", "Second"),
        Column("difference", "First - second", Unit.FRACTION),
        Column("detectable", "Detectable", Unit.FRACTION),
        Column("pairs", "Pairs", Unit.COUNT),
        Column("clusters", "Repositories", Unit.COUNT),
        Column("p", "p", Unit.P),
        Column("q", "p corrected", Unit.P),
    )
    cells = attrgetter(
        "setting", "first", "second", "difference", "detectable", "pairs", "clusters", "p", "q"
    )
    rows = tuple(Row(cells(each), each.measure.title) for each in comparison.tests)
    title = "paired differences, in percent points"
    notes = (
        "p: sign flips of whole repositories; corrected: Benjamini-Hochberg over all rows",
        f"detectable: smallest that so many pairs would show ({POWER:.0%} power, before correction)",
    )
    return Table("differences", title, columns, rows, notes, comparison.aggregation, "measure")


def comparison_to_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON data; fractions are 0..1, None means unknown."""
    return {
        "by": comparison.by,
        "aggregation": str(comparison.aggregation),
        "ranked_by": comparison.primary.name,
        "systems": list(comparison.systems),
        "settings": list(comparison.settings),
        "trials": comparison.trials,
        "instances": comparison.instances,
        "repositories": comparison.repositories,
        "estimates": [
            {
                "system": each.system,
                "setting": each.setting,
                "measure": each.measure.name,
                **asdict(each.interval),
                "missing": each.missing,
                "rank": each.rank,
                "better_than": list(each.beats),
            }
            for each in comparison.estimates
        ],
        "tests": [
            {
                "first": each.first,
                "second": each.second,
                "setting": each.setting,
                "measure": each.measure.name,
                "difference": each.difference,
                "detectable": each.detectable,
                "pairs": each.pairs,
                "clusters": each.clusters,
                "p": each.p,
                "p_corrected": each.q,
                "significant": each.significant,
            }
            for each in comparison.tests
        ],
        "references": [{**asdict(each), "measure": each.measure.name} for each in comparison.references],
        "notes": list(comparison.notes),
        "published": None if comparison.published is None else comparison_to_json(comparison.published),
    }
