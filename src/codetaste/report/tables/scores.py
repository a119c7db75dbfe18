"""The paper's Tables 3, 4 and 5 (CodeTaste, A.5): scores and precision by agent, track and mode."""

from __future__ import annotations

from itertools import product
from statistics import median
from typing import TYPE_CHECKING

from codetaste.report.statistics import measures
from codetaste.report.statistics.flagged import flagged_notes
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.merge import REFERENCE_TITLES
from codetaste.report.table import Cell, Column, Row, Table, interval_legend

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.report.statistics.measures import Measure
    from codetaste.report.statistics.view import AggregatedTrials

_TABLE_3 = (measures.IFR_PLUS, measures.IFR_MINUS, measures.PASS)
_LINES = (measures.EDITED, measures.ADDED, measures.REMOVED)
MODE_COLUMN = Column("mode", "Mode")
TRIALS_COLUMN = Column("trials", "Trials", Unit.COUNT)


def measure_column(measure: Measure, *, heading: str = "", bare: bool = False) -> Column:
    """Return the column of a measure."""
    return Column(measure.name, measure.title, measure.unit, measure.latex, heading, bare)


def table_3(view: AggregatedTrials) -> Table:
    """IFR⁺, IFR⁻ and PASS: a row for each track and mode, three columns for each agent."""
    agents = view.ranked_agents()
    columns = [measure_column(measure, heading=agent, bare=True) for agent in agents for measure in _TABLE_3]
    rows = []
    for track_mode in view.trials.track_modes:
        trials = [view.trials_of(agent, track_mode) for agent in agents]
        cells = [view.interval(each, measure) for each, measure in product(trials, _TABLE_3)]
        rows.append(Row((track_mode.title, *cells)))
    title = "IFR⁺, IFR⁻ and PASS of all agents in all tracks and modes, in percent"
    return Table("3", title, (MODE_COLUMN, *columns), tuple(rows), flagged_notes(view), view.aggregation)


def table_4(view: AggregatedTrials) -> Table:
    """PASS, A and IFR with intervals: a section for each agent, a row for each track and mode."""
    title = "PASS, A and IFR in all tracks and modes, in percent with 95 % confidence intervals"
    columns = (MODE_COLUMN, *(measure_column(measure) for measure in measures.RATES), TRIALS_COLUMN)
    rows = _rows(view, measures.RATES)
    notes = (*interval_legend(rows), *missing_values_note(view, measures.RATES), *flagged_notes(view))
    return Table("4", title, columns, rows, notes, view.aggregation, "agent")


def table_5(view: AggregatedTrials) -> Table:
    """PREC with intervals, and the mean number of lines that the patches change."""
    title = "PREC in percent with 95 % confidence intervals, and the lines that patches edit on average"
    columns = (
        MODE_COLUMN,
        *(measure_column(measure) for measure in measures.PRECISION),
        *(measure_column(measure, bare=True) for measure in _LINES),
        TRIALS_COLUMN,
    )
    shown = (*measures.PRECISION, *_LINES)
    rows = _rows(view, shown)
    # The line counts are shown without intervals.
    with_intervals = tuple(Row(row.cells[: 1 + len(measures.PRECISION)]) for row in rows)
    notes = (*interval_legend(with_intervals), *missing_values_note(view, shown))
    return Table("5", title, columns, rows, notes, view.aggregation, "agent")


def strict_success_table(view: AggregatedTrials) -> Table:
    """Strict success and F₁, and medians, as the published analysis has them."""
    means = (measures.STRICT_SUCCESS, measures.F1)
    medians = (measures.ALIGNMENT, measures.IFR, measures.PREC, measures.EDITED, measures.COST)
    columns = (
        MODE_COLUMN,
        *(measure_column(measure) for measure in means),
        *(measure_column(measure, heading="Medians") for measure in medians),
        TRIALS_COLUMN,
    )
    rows = []
    for agent, track_mode, trials in view.groups():
        middles = [view.sample(trials, measure).values for measure in medians]
        cells: list[Cell] = [view.interval(trials, measure) for measure in means]
        cells += [median(values) if values else None for values in middles]
        rows.append(Row((track_mode.title, *cells, len(trials)), agent))
    with_intervals = tuple(Row(row.cells[: 1 + len(means)]) for row in rows)
    notes = (*interval_legend(with_intervals), *missing_values_note(view, means))
    title = "strict success (PASS and IFR 1) and F₁ of PREC and IFR, in percent, and medians"
    return Table("strict-success", title, columns, tuple(rows), notes, view.aggregation, "agent")


def _rows(view: AggregatedTrials, shown: Sequence[Measure]) -> tuple[Row, ...]:
    rows = [
        Row((track_mode.title, *(view.interval(trials, measure) for measure in shown), len(trials)), agent)
        for agent, track_mode, trials in view.groups()
    ]
    # The golden patch and no patch: means only, as in the paper.
    for agent, title in REFERENCE_TITLES.items():
        trials = [record for record in view.trials.pseudo if record.agent == agent]
        means: list[Cell] = [view.interval(trials, measure).mean for measure in shown]
        if trials:
            rows.append(Row((title, *means, len(trials)), "References"))
    return tuple(rows)


def missing_values_note(view: AggregatedTrials, shown: Sequence[Measure]) -> tuple[str, ...]:
    """Return a note on the number of trials without a value, for each measure that has such trials."""
    trials = view.listed
    missing = {measure.title: view.sample(trials, measure).missing for measure in shown}
    without_value = [f"{title} in {number:,}" for title, number in missing.items() if number]
    if not without_value:
        return ()
    return (f"Of {len(trials):,} trials there is no value of {', '.join(without_value)}: not in the means",)
