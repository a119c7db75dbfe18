"""The comparison at the end of a run: agents by tracks, intervals, and which differences are significant."""

from __future__ import annotations

from dataclasses import replace
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from codetaste.report.aggregate import Aggregation
from codetaste.report.contest import ALPHA, COMPARED, Comparison, compare_view, counted
from codetaste.report.measures import Unit
from codetaste.report.render_text import render_text
from codetaste.report.table import Cell, Column, Row, Table, agreed, legend
from codetaste.report.trials import gather
from codetaste.report.view import view

if TYPE_CHECKING:
    from collections.abc import Iterable

    from codetaste.evaluation.records import TrialRecord
    from codetaste.report.contest import By, Contest, Reference, Standing
    from codetaste.report.measures import Measure
    from codetaste.report.statistics import Interval

__all__ = ["Comparison", "as_json", "compare", "comparison_table", "differences_table", "render"]
_TOLD = 12
"""Significant differences that are told one by one below the table."""


def compare(
    records: Iterable[TrialRecord],
    *,
    aggregation: Aggregation | Literal["strict", "published", "both"] = "both",
    by: By = "agent",
) -> Comparison:
    """Compare the agents of ``records`` in every track and mode, or with ``by`` lane these of every agent.

    With both aggregations it is strict, and ``published`` has the other.
    """
    trials = gather(records)
    if aggregation != "both":
        return compare_view(view(trials, Aggregation(aggregation)), by)
    strict, published = (compare_view(view(trials, each), by) for each in Aggregation)
    return replace(strict, published=published)


def render(comparison: Comparison, width: int | None = None) -> str:
    """Say it in plain text, at most ``width`` columns wide where that can be done."""
    if not comparison.contestants:
        return "There are no trials to compare."
    both = [comparison] if comparison.published is None else [comparison, comparison.published]
    tables = agreed([comparison_table(each) for each in both])
    return "\n\n".join(render_text(table, width) for table in tables)


def comparison_table(comparison: Comparison) -> Table:
    """Return it as a table: a section for each measure, a row for each contestant, columns for each place."""
    agents = comparison.by == "agent"
    columns = [Column(comparison.by, "Agent" if agents else "Mode"), Column("sign", "")]
    for place in comparison.places:
        columns += [
            Column("mean", "mean", Unit.FRACTION, over=place),
            Column("better_than", ">", over=place),
            Column("n", "n", Unit.COUNT, over=place),
        ]
    rows = tuple(row for measure in _measures(comparison) for row in _rows(comparison, measure))
    what = "agents by track and mode" if agents else "tracks and modes by agent"
    instances = counted(comparison.instances, "instance")
    repositories = counted(comparison.repositories, "repository", "repositories")
    title = f"{what}; {counted(comparison.trials, 'trial')} of {instances} in {repositories}"
    notes = (*_notes(comparison), *legend(rows), *comparison.notes)
    name = "comparison" if agents else "modes"
    return Table(name, title, tuple(columns), rows, notes, comparison.aggregation, "measure")


def _rows(comparison: Comparison, measure: Measure) -> list[Row]:
    section = f"{measure.title} (%)"
    rows = []
    for contestant in comparison.contestants:
        standings = [comparison.standing(contestant, place, measure) for place in comparison.places]
        cells = [cell for standing in standings for cell in _cells(comparison, standing)]
        rows.append(Row((contestant, comparison.letter(contestant), *cells), section))
    known = {(each.name, each.place): each for each in comparison.references if each.measure == measure}
    for name in dict.fromkeys(name for name, _ in known):
        found = [known.get((name, place)) for place in comparison.places]
        cells = [cell for each in found for cell in ((each.mean, "", each.n) if each else (None, "", 0))]
        rows.append(Row((name, "", *cells), section))
    return rows


def _measures(comparison: Comparison) -> list[Measure]:
    taken = {standing.measure for standing in comparison.standings}
    return [measure for measure in COMPARED if measure in taken]


def _cells(comparison: Comparison, standing: Standing | None) -> tuple[Cell, Cell, Cell]:
    if standing is None:
        return None, "", 0
    between = "" if len(comparison.contestants) <= len(ascii_lowercase) else " "
    beats = between.join(comparison.letter(other) for other in standing.beats)
    return standing.interval, beats, standing.interval.n


def _notes(comparison: Comparison) -> list[str]:
    """Say how it is ranked, what the letters mean, and the differences that are more than chance."""
    tests = len(comparison.contests)
    if not comparison.standings:
        return ["no trial has a value here"]
    if not tests:
        return ["there is nothing to compare with"]
    ranked = f"ranked by the mean of {comparison.primary.title} over its columns; "
    ranked = ranked if comparison.by == "agent" else ""
    corrected = f"{ALPHA:.0%} false discoveries among {tests:,} paired sign-flip tests by repository"
    notes = [f"{ranked}>: significantly better than these ({corrected}, Benjamini-Hochberg)"]
    told = [each for each in comparison.contests if each.measure == comparison.primary and each.significant]
    told.sort(key=lambda each: (each.q, -abs(each.difference)))
    notes += [_say(each) for each in told[:_TOLD]]
    if len(told) > _TOLD:
        notes.append(f"and {len(told) - _TOLD} more significant differences of {comparison.primary.title}")
    if not any(each.significant for each in comparison.contests):
        notes.append("no difference is significant")
    return notes


def _say(contest: Contest) -> str:
    first, second = (contest.first, contest.second)[:: 1 if contest.difference > 0 else -1]
    return (
        f"{contest.place}: {first} is {abs(contest.difference) * 100:.1f} points of {contest.measure.title}"
        f" better than {second} (p = {contest.q:.2g} corrected, {contest.pairs} pairs)"
    )


def differences_table(comparison: Comparison) -> Table:
    """Return every paired test as a row."""
    columns = (
        Column("place", "Track and mode" if comparison.by == "agent" else "Agent"),
        Column("first", "First"),
        Column("second", "Second"),
        Column("difference", "First - second", Unit.FRACTION),
        Column("pairs", "Pairs", Unit.COUNT),
        Column("clusters", "Repositories", Unit.COUNT),
        Column("p", "p", Unit.P),
        Column("q", "p corrected", Unit.P),
    )
    rows = tuple(
        Row(
            (
                each.place,
                each.first,
                each.second,
                each.difference,
                each.pairs,
                each.clusters,
                each.p,
                each.q,
            ),
            each.measure.title,
        )
        for each in comparison.contests
    )
    title = "paired differences, in percent points"
    notes = ("p: sign flips of whole repositories; corrected: Benjamini-Hochberg over all rows",)
    return Table("differences", title, columns, rows, notes, comparison.aggregation, "measure")


def as_json(comparison: Comparison) -> dict[str, Any]:
    """Say it as JSON data; fractions are 0..1, None is not known."""
    return {
        "by": comparison.by,
        "aggregation": str(comparison.aggregation),
        "ranked_by": comparison.primary.name,
        "contestants": list(comparison.contestants),
        "places": list(comparison.places),
        "trials": comparison.trials,
        "instances": comparison.instances,
        "repositories": comparison.repositories,
        "standings": [_standing_json(each) for each in comparison.standings],
        "contests": [_contest_json(each) for each in comparison.contests],
        "references": [_reference_json(each) for each in comparison.references],
        "notes": list(comparison.notes),
        "published": None if comparison.published is None else as_json(comparison.published),
    }


def _standing_json(standing: Standing) -> dict[str, Any]:
    return {
        "contestant": standing.contestant,
        "place": standing.place,
        "measure": standing.measure.name,
        **interval_json(standing.interval),
        "missing": standing.missing,
        "rank": standing.rank,
        "better_than": list(standing.beats),
    }


def _reference_json(reference: Reference) -> dict[str, Any]:
    return {
        "name": reference.name,
        "place": reference.place,
        "measure": reference.measure.name,
        "mean": reference.mean,
        "n": reference.n,
    }


def interval_json(interval: Interval) -> dict[str, Any]:
    """Say an interval as JSON data."""
    return {
        "mean": interval.mean,
        "low": interval.low,
        "high": interval.high,
        "n": interval.n,
        "clusters": interval.clusters,
        "method": str(interval.method),
    }


def _contest_json(contest: Contest) -> dict[str, Any]:
    return {
        "first": contest.first,
        "second": contest.second,
        "place": contest.place,
        "measure": contest.measure.name,
        "difference": contest.difference,
        "pairs": contest.pairs,
        "clusters": contest.clusters,
        "p": contest.p,
        "p_corrected": contest.q,
        "significant": contest.significant,
    }
