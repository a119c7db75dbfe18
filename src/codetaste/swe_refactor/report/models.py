"""Table 2 and what it lacks: the scores of each model in each strategy, and what they cost."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from operator import attrgetter
from statistics import fmean
from typing import TYPE_CHECKING, Final

from codetaste.core.text import plural
from codetaste.core.units import format_usd
from codetaste.report.statistics.intervals import mean_interval
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.report.shares import count_cells, count_columns, legend, mean_codebleu
from codetaste.swe_refactor.report.trial_row import group_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

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
NOT_COUNTED_COLUMN: Final = Column("not_counted", "Not counted", Unit.COUNT)


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
    left_out = count_uncounted(rows)
    shown = tuple(
        Row((by.model, *score_cells(each), left_out[by]), by.strategy) for by, each in groups.items()
    )
    columns = (Column("model", "Model"), *score_columns(), NOT_COUNTED_COLUMN)
    notes = (*score_notes(rows), *legend(columns, shown), *row_notes(rows))
    return Table("2", _TITLE, columns, shown, notes, section="strategy")


_TITLE = "compile & test, verified refactorings, successes and CodeBLEU by model"


def score_notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    """Explain the columns of the scores, and count the trials without a CodeBLEU."""
    notes = [
        "Success: compiles, passes the tests, and is verified as the intended refactoring and nothing else",
        "Published check: the intended type occurs anywhere in the edited files; not part of a success here",
    ]
    counted = [row for row in rows if row.counted]
    missing = sum(row.similarity is None for row in counted)
    if missing:
        notes.append(f"CodeBLEU was not measured in {missing:,} of {plural(len(counted), 'trial')}")
    return tuple(notes)


def count_uncounted(rows: Iterable[TrialRow]) -> Counter[StrategyModel]:
    """Return how many trials of each strategy and model are neither successes nor failures."""
    return Counter(row.by for row in rows if not row.counted)


def row_notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    """Say what the rows lack for a fair comparison: trials that do not count, instances, real models."""
    return (*_uncounted_notes(rows), *_coverage_notes(group_rows(rows)), *_scripted_notes(rows))


def _uncounted_notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    left_out = [row for row in rows if not row.counted]
    if not left_out:
        return ()
    reasons = Counter(str(row.outcome) for row in left_out)
    named = ", ".join(f"{reason} {number:,}" for reason, number in sorted(reasons.items()))
    cost = sum((row.cost_usd for row in left_out if row.cost_usd is not None), Decimal(0))
    spent = f"; they cost {format_usd(cost)}" if cost else ""
    are = "are" if len(left_out) > 1 else "is"
    return (f"{plural(len(left_out), 'trial')} {are} not counted, as no fault of the model ({named}){spent}",)


def _scripted_notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    names = sorted({row.model for row in rows if row.scripted})
    return (f"scripted, with costs that are not real: {', '.join(names)}",) if names else ()


def _coverage_notes(groups: Mapping[StrategyModel, Sequence[TrialRow]]) -> tuple[str, ...]:
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
        NOT_COUNTED_COLUMN,
    )
    left_out = count_uncounted(rows)
    shown = tuple(Row((by.model, *_effort(each), left_out[by]), by.strategy) for by, each in groups.items())
    unknown = sum(row.cost_usd is None for row in rows if row.counted)
    notes = (
        "Turns and time: means of a trial; cost of a success: the cost of all trials by the successes",
        *(
            [f"the cost of {plural(unknown, 'trial')} is unknown, and not in these figures"]
            if unknown
            else []
        ),
        *legend(columns, shown),
        *row_notes(rows),
    )
    title = "cost, turns and time beside successes by model"
    return Table("effort", title, columns, shown, notes, section="strategy")


def _effort(rows: Sequence[TrialRow]) -> tuple[Cell, ...]:
    costs = [row.cost_usd for row in rows if row.cost_usd is not None]
    turns = [float(row.turns) for row in rows if row.turns is not None]
    times = [row.wall_s for row in rows if row.wall_s is not None]
    successes = sum(row.success for row in rows)
    total = sum(costs, Decimal(0))
    return (
        len(rows),
        *count_cells(rows, SUCCESS),
        float(total) if costs else None,
        mean_interval([float(cost) for cost in costs], fractions=False),
        float(total / successes) if successes and len(costs) == len(rows) else None,
        fmean(turns) if turns else None,
        fmean(times) if times else None,
    )
