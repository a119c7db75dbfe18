"""The table of failures by category, for each strategy and model (§5)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.report.failures.category import FailureCategory
from codetaste.swe_refactor.report.failures.classify import classify_failure
from codetaste.swe_refactor.report.models import NOT_COUNTED_COLUMN, TRIALS, count_uncounted, row_notes
from codetaste.swe_refactor.report.trial_row import group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.report.trial_row import TrialRow


def failure_table(rows: Sequence[TrialRow]) -> Table:
    """Return the number of failures of each category that occurs, with a section for each strategy."""
    groups = group_rows(rows)
    counts = {
        by: Counter(row.failure or classify_failure(row.outcome) for row in own if not row.success)
        for by, own in groups.items()
    }
    found = [each for each in FailureCategory if any(each in count for count in counts.values())]
    left_out = count_uncounted(rows)
    shown = tuple(
        Row(
            (by.model, len(groups[by]), count.total(), *(count[each] for each in found), left_out[by]),
            by.strategy,
        )
        for by, count in counts.items()
    )
    columns = (
        Column("model", "Model"),
        TRIALS,
        Column("failures", "Failures", Unit.COUNT),
        *(Column(each.name.lower(), each.value.capitalize(), Unit.COUNT) for each in found),
        NOT_COUNTED_COLUMN,
    )
    notes = ("each failure has one category: the first thing that is wrong with the answer", *row_notes(rows))
    return Table("failures", "failures by category and model", columns, shown, notes, section="strategy")
