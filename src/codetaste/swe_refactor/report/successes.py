"""Tables 3, 4 and 5 and Figure 3: successes by type of refactoring; and scores by type or project."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, Literal

from codetaste.core.text import plural
from codetaste.report.statistics.measures import Unit
from codetaste.report.table import Column, Row, Table
from codetaste.swe_refactor.dataset.instance import REFACTORING_TYPES
from codetaste.swe_refactor.report.models import (
    SUCCESS,
    row_notes,
    score_cells,
    score_columns,
    score_notes,
)
from codetaste.swe_refactor.report.shares import count_cells, count_columns, legend
from codetaste.swe_refactor.report.trial_row import group_rows, success_share

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from codetaste.swe_refactor.report.trial_row import TrialRow

_ABBREVIATIONS: Final = dict(
    zip(REFACTORING_TYPES, ("EM", "IM", "MM", "EM + MM", "MM + RM", "MM + IM"), strict=True)
)
_LEGEND: Final = "EM: Extract Method, IM: Inline Method, MM: Move Method, RM: Rename Method; (instances)"


def table_3(rows: Sequence[TrialRow]) -> Table:
    """Return the number of successes of each model by type, with a section for each strategy."""
    shown = [Row((by.model, *_counts(each, rows)), by.strategy) for by, each in group_rows(rows).items()]
    columns = (Column("model", "Model"), *_count_columns(rows))
    title = "successful refactorings by type and model"
    return Table("3", title, columns, tuple(shown), _notes(rows), section="strategy")


def table_4(rows: Sequence[TrialRow]) -> Table:
    """Return the successes and their shares on all instances, the best strategy and model first."""
    return _ranked("4", "successful refactorings on all instances", rows)


def table_5(rows: Sequence[TrialRow], sample: Collection[str]) -> Table:
    """Return Table 4 for the instances whose ids are in ``sample``, such as the stratified sample of §4.4."""
    chosen = [row for row in rows if row.instance in sample]
    size = plural(len(set(sample)), "instance")
    table = _ranked("5", f"successful refactorings on a sample of {size}", chosen)
    missing = len(set(sample)) - len({row.instance for row in chosen if row.counted})
    if not missing:
        return table
    have = "have" if missing > 1 else "has"
    note = f"{plural(missing, 'instance')} of the sample {have} no trial that counts"
    return replace(table, notes=(note, *table.notes))


def figure_3(rows: Sequence[TrialRow]) -> Table:
    """Return the data of Figure 3: the successes of each strategy by type, with a section for each model."""
    groups = sorted(group_rows(rows).items(), key=lambda group: group[0].model)
    shown = [Row((by.strategy, *_counts(each, rows)), by.model) for by, each in groups]
    columns = (Column("strategy", "Strategy"), *_count_columns(rows))
    title = "successful refactorings by strategy and type (Figure 3)"
    return Table("strategies", title, columns, tuple(shown), _notes(rows), section="model")


def score_table(rows: Sequence[TrialRow], by: Literal["type", "project"]) -> Table:
    """Return the scores of Table 2 for each type or project, with a section for each strategy and model."""
    known = {name: place for place, name in enumerate(REFACTORING_TYPES)} if by == "type" else {}
    shown = []
    for system, own in group_rows(rows).items():
        parts: defaultdict[str, list[TrialRow]] = defaultdict(list)
        for row in own:
            parts[row.type if by == "type" else row.project].append(row)
        names = sorted(parts, key=lambda name: (known.get(name, len(known)), name))
        shown += [Row((name, *score_cells(parts[name])), system.title) for name in names]
    columns = (Column(by, by.capitalize()), *score_columns())
    notes = (*score_notes(rows), *legend(columns, shown), *row_notes(rows))
    title = f"scores by {by} of each strategy and model"
    return Table(f"by-{by}", title, columns, tuple(shown), notes, section="strategy and model")


def _ranked(name: str, title: str, rows: Sequence[TrialRow]) -> Table:
    """Return a row for each strategy and model: successes and their share, of all and of each type."""
    groups = sorted(group_rows(rows).items(), key=lambda group: (-success_share(group[1]), group[0]))
    sizes = _instances_by_type(rows)
    columns = [Column("strategy", "Strategy"), Column("model", "Model")]
    columns += count_columns("total", f"Total ({sum(sizes.values()):,})")
    for kind, size in sizes.items():
        columns += count_columns(_column_name(kind), f"{_ABBREVIATIONS.get(kind, kind)} ({size:,})")
    shown = []
    for by, own in groups:
        cells = [*count_cells(own, SUCCESS)]
        for kind in sizes:
            cells += count_cells([row for row in own if row.type == kind], SUCCESS)
        shown.append(Row((by.strategy, by.model, *cells)))
    return Table(name, title, tuple(columns), tuple(shown), (*_notes(rows), *legend(columns, shown)))


def _count_columns(rows: Iterable[TrialRow]) -> tuple[Column, ...]:
    sizes = _instances_by_type(rows)
    return (
        Column("total", "Success", Unit.COUNT),
        *(
            Column(_column_name(kind), f"{_ABBREVIATIONS.get(kind, kind)} ({size:,})", Unit.COUNT)
            for kind, size in sizes.items()
        ),
    )


def _counts(own: Sequence[TrialRow], rows: Iterable[TrialRow]) -> tuple[int, ...]:
    """Return the successes of one strategy and model: all, and of each type that occurs in ``rows``."""
    kinds = [row.type for row in own if row.success]
    return len(kinds), *(kinds.count(kind) for kind in _instances_by_type(rows))


def _instances_by_type(rows: Iterable[TrialRow]) -> dict[str, int]:
    """Return the number of instances with a counted trial by type, the six types first."""
    instances: defaultdict[str, set[str]] = defaultdict(set)
    for row in rows:
        if row.counted:
            instances[row.type].add(row.instance)
    others = sorted(set(instances) - set(REFACTORING_TYPES))
    return {kind: len(instances[kind]) for kind in (*REFACTORING_TYPES, *others) if kind in instances}


def _notes(rows: Sequence[TrialRow]) -> tuple[str, ...]:
    most = max((row.attempt for row in rows if row.counted), default=1)
    several = (f"up to {most} attempts at an instance are counted",) if most > 1 else ()
    return (_LEGEND, *several, *row_notes(rows))


def _column_name(kind: str) -> str:
    return kind.lower().replace(" ", "_")
