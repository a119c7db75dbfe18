"""Tables of refactorings: what agents, or one patch, did of what the human did, beside IFR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.report.statistics import measures
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table, interval_legend
from codetaste.report.tables.scores import MODE_COLUMN, TRIALS_COLUMN, measure_column

if TYPE_CHECKING:
    from codetaste.evaluation.activity.refactorings import RefactoringCounts
    from codetaste.report.statistics.view import AggregatedTrials

_MEANS = (
    measures.IFR,
    measures.HUMAN_REFACTORINGS,
    measures.AGENT_REFACTORINGS,
    measures.AGREED_REFACTORINGS,
    measures.SAME_REFACTORINGS,
    measures.REFACTORING_RECALL,
    measures.REFACTORING_PRECISION,
    measures.REFACTORING_PURITY,
)


def refactorings_table(view: AggregatedTrials) -> Table | None:
    """Return how many refactorings agents and humans did, and which agree; None without a comparison.

    All means but that of the number of trials are over the trials whose refactorings were compared.
    """
    rows = []
    for agent, track_mode, trials in view.groups():
        compared = tuple(record for record in trials if record.refactorings is not None)
        if compared:
            means = [view.interval(compared, measure) for measure in _MEANS]
            rows.append(Row((track_mode.title, len(trials), len(compared), *means), agent))
    if not rows:
        return None
    columns = (
        MODE_COLUMN,
        TRIALS_COLUMN,
        Column("compared", "Compared", Unit.COUNT),
        *(measure_column(measure) for measure in _MEANS),
    )
    shown = tuple(rows)
    notes = (
        *interval_legend(shown),
        "both: equal in type and in the code that is refactored; same result: with the same new element, too",
        "pure: of the agent's refactorings that PurityChecker judges",
        "means are over the compared trials; a share is not defined for a trial without refactorings",
    )
    title = "Refactorings of agents beside the human's: means of a trial"
    return Table("refactorings", title, columns, shown, notes, view.aggregation, "agent")


def patch_refactorings_table(ifr: float | None, counts: RefactoringCounts) -> Table:
    """Return the same numbers for one patch."""
    names = [measure.name.removeprefix("refactorings_") for measure in _MEANS[1:]]
    columns = tuple(measure_column(measure) for measure in _MEANS)
    cells = (ifr, *(getattr(counts, name) for name in names))
    return Table("refactorings", "Refactorings of the patch beside the human's", columns, (Row(cells),))
