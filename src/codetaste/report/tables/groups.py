"""Score tables by a property of the instances (language, category, repository) or by track, mode or agent."""

from __future__ import annotations

from collections import defaultdict
from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING

from codetaste.report.statistics import measures
from codetaste.report.statistics.flagged import flagged_notes
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.merge import track_mode_of, track_mode_order
from codetaste.report.table import Column, Row, Table, interval_legend
from codetaste.report.tables.scores import MODE_COLUMN, TRIALS_COLUMN, measure_column, missing_values_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.merge import TrackMode
    from codetaste.report.statistics.view import AggregatedTrials

_MEASURES = (measures.PASS, measures.ALIGNMENT, measures.IFR, measures.PREC)


class GroupBy(StrEnum):
    """The property by which trials are grouped."""

    AGENT = "agent"
    TRACK = "track"
    MODE = "mode"
    LANGUAGE = "language"
    CATEGORY = "category"
    REPOSITORY = "repository"
    INSTANCE = "instance"


def group_table(view: AggregatedTrials, by: GroupBy) -> Table:
    """PASS, A, IFR and PREC of each group; groups by a property of instances are split by track and mode.

    Groups by track combine its modes, groups by mode its tracks, and groups by agent all of its trials.
    """
    of: Callable[[TrialRecord], str] = attrgetter(by)
    by_track_mode = by in {GroupBy.LANGUAGE, GroupBy.CATEGORY, GroupBy.REPOSITORY, GroupBy.INSTANCE}
    groups: defaultdict[tuple[str, str, TrackMode | None], list[TrialRecord]] = defaultdict(list)
    for record in view.trials.agents:
        agent = "" if by is GroupBy.AGENT else record.agent
        track_mode = track_mode_of(record) if by_track_mode else None
        groups[agent, of(record) or "unknown", track_mode].append(record)
    ranks = {agent: rank for rank, agent in enumerate(view.ranked_agents())}

    def order(key: tuple[str, str, TrackMode | None]) -> tuple[object, ...]:
        agent, name, track_mode = key
        own = (ranks.get(agent, 0), ranks.get(name, 0), name.lower(), name)
        return own if track_mode is None else (*own, *track_mode_order(track_mode))

    rows = []
    for agent, name, track_mode in sorted(groups, key=order):
        trials = groups[agent, name, track_mode]
        labels = (name, track_mode.title) if track_mode is not None else (name,)
        instances = len({record.instance for record in trials})
        values = [view.interval(trials, measure) for measure in _MEASURES]
        rows.append(Row((*labels, *values, len(trials), instances), agent))
    shown = tuple(rows)
    columns = (
        Column(by, by.title()),
        *((MODE_COLUMN,) if by_track_mode else ()),
        *(measure_column(measure) for measure in _MEASURES),
        TRIALS_COLUMN,
        Column("instances", "Instances", Unit.COUNT),
    )
    notes = (*interval_legend(shown), *missing_values_note(view, _MEASURES), *flagged_notes(view))
    title = f"Scores by {by}, in percent with 95 % confidence intervals"
    section = "" if by is GroupBy.AGENT else "agent"
    return Table(f"by-{by}", title, columns, shown, notes, view.aggregation, section)
