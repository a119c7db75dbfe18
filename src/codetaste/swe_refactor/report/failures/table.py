"""The table of failures by category, for each strategy and model (§5)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.report.failures.category import FailureCategory
from codetaste.swe_refactor.report.failures.classify import classify_failure
from codetaste.swe_refactor.report.models import TRIALS
from codetaste.swe_refactor.report.trial_row import group_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.swe_refactor.report.trial_row import TrialRow


def failure_table(rows: Sequence[TrialRow]) -> Table:
    """Return the number of failures of each category that occurs, with a section for each strategy."""
    counts = {
        by: Counter(row.failure or classify_failure(row.outcome) for row in own if not row.success)
        for by, own in group_rows(rows).items()
    }
    found = [each for each in FailureCategory if any(each in count for count in counts.values())]
    trials = Counter(row.by for row in rows)
    shown = tuple(
        Row(
            (by.model, trials[by], count.total(), *(count[category] for category in found)),
            by.strategy,
        )
        for by, count in counts.items()
    )
    columns = (
        Column("model", "Model"),
        TRIALS,
        Column("failures", "Failures", Unit.COUNT),
        *(Column(each.name.lower(), each.value.capitalize(), Unit.COUNT) for each in found),
    )
    notes = ("each failure has one category: the first thing that is wrong with the answer",)
    return Table("failures", "failures by category and model", columns, shown, notes, section="strategy")
