"""Table 2 and what it lacks: the scores of each model in each strategy, and what they cost."""

from __future__ import annotations

import math
from decimal import Decimal
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from codetaste.core.text import plural
from codetaste.report.statistics.intervals import mean_interval
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.report.shares import count_cells, count_columns, legend, mean_codebleu
from codetaste.swe_refactor.report.trial_row import group_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from codetaste.report.table import Cell
    from codetaste.swe_refactor.report.trial_row import StrategyModel, TrialRow

COMPILES: Final[Callable[[TrialRow], bool]] = attrgetter("compiles_and_passes")
VERIFIED: Final[Callable[[TrialRow], bool]] = attrgetter("verified")
PUBLISHED: Final[Callable[[TrialRow], bool]] = attrgetter("published_check")
SUCCESS: Final[Callable[[TrialRow], bool]] = attrgetter("success")
SCORES: Final = (
    ("compiles", "Compile & test", COMPILES),
    ("verified", "Verified", VERIFIED),
    ("success", "Success", SUCCESS),
    ("published_check", "Published check", PUBLISHED),
)
CODEBLEU_COLUMNS: Final = (
    Column("codebleu_all", "all", Unit.NUMBER, heading="CodeBLEU", mean_only=True, decimals=3),
    Column("codebleu_success", "successes", Unit.NUMBER, heading="CodeBLEU", mean_only=True, decimals=3),
)
TRIALS: Final = Column("trials", "Trials", Unit.COUNT)


def score_columns() -> tuple[Column, ...]:
    """Return the columns of ``score_cells``."""
    counts = [column for name, title, _ in SCORES for column in count_columns(name, title)]
    return (TRIALS, *counts, *CODEBLEU_COLUMNS)


def score_cells(rows: Sequence[TrialRow]) -> tuple[Cell, ...]:
    """Return the number of trials, each score with its share, and both means of CodeBLEU."""
    counts = [cell for _, _, holds in SCORES for cell in count_cells(rows, holds)]
    return (len(rows), *counts, mean_codebleu(rows), mean_codebleu(row for row in rows if row.success))


def table_2(rows: Sequence[TrialRow]) -> Table:
    """Return the scores of each model, with a section for each strategy."""
    groups = group_rows(rows)
    shown = tuple(Row((by.model, *score_cells(each)), by.strategy) for by, each in groups.items())
    columns = (Column("model", "Model"), *score_columns())
    notes = (*score_notes(rows), *legend(shown), *coverage_notes(groups))
    return Table("2", _TITLE, columns, shown, notes, section="strategy")


_TITLE = "compile & test, verified refactorings, successes and CodeBLEU by model"


def score_notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    """Explain the columns of the scores, and count the trials without a CodeBLEU."""
    notes = [
        "Success: compiles, passes the tests, and is verified as the intended refactoring and nothing else",
        "Published check: the intended type occurs anywhere in the edited files; not part of a success here",
    ]
    missing = sum(row.codebleu is None for row in rows)
    if missing:
        notes.append(f"CodeBLEU was not measured in {missing:,} of {plural(len(rows), 'trial')}")
    return tuple(notes)


def coverage_notes(groups: Mapping[StrategyModel, Sequence[TrialRow]]) -> tuple[str, ...]:
    """Name the strategies and models that lack instances of others: their shares cannot be compared."""
    instances = {by: {row.instance for row in rows} for by, rows in groups.items()}
    total = len(set().union(*instances.values())) if instances else 0
    return tuple(
        f"{by.title}: {len(found):,} of {total:,} instances"
        for by, found in instances.items()
        if len(found) < total
    )


def effort_table(rows: Sequence[TrialRow]) -> Table:
    """Return what the trials of each model cost beside its successes, with a section for each strategy."""
    groups = group_rows(rows)
    columns = (
        Column("model", "Model"),
        TRIALS,
        *count_columns("success", "Success"),
        Column("cost_usd", "all", Unit.USD, heading="Cost ($)"),
        Column("cost_usd_trial", "a trial", Unit.USD, heading="Cost ($)", mean_only=True, decimals=4),
        Column("cost_usd_success", "a success", Unit.USD, heading="Cost ($)", decimals=4),
        Column("turns", "Turns", Unit.NUMBER, mean_only=True),
        Column("wall_s", "Time", Unit.SECONDS, mean_only=True),
    )
    shown = tuple(Row((by.model, *_effort(each)), by.strategy) for by, each in groups.items())
    unknown = sum(row.cost_usd is None for row in rows)
    notes = (
        "Turns and time: means of a trial; cost of a success: the cost of all trials by the successes",
        *(
            [f"the cost of {plural(unknown, 'trial')} is unknown, and not in these figures"]
            if unknown
            else []
        ),
        *legend(Row(row.cells[:4]) for row in shown),
        *coverage_notes(groups),
    )
    title = "cost, turns and time beside successes by model"
    return Table("effort", title, columns, shown, notes, section="strategy")


def _effort(rows: Sequence[TrialRow]) -> tuple[Cell, ...]:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    turns = [float(row.turns) for row in rows if row.turns is not None]
    successes = sum(row.success for row in rows)
    total = sum(costs, Decimal(0))
    return (
        len(rows),
        *count_cells(rows, SUCCESS),
        float(total) if costs else None,
        mean_interval([float(cost) for cost in costs], fractions=False),
        float(total / successes) if successes and len(costs) == len(rows) else None,
        math.fsum(turns) / len(turns) if turns else None,
        math.fsum(row.wall_s for row in rows) / len(rows),
    )
