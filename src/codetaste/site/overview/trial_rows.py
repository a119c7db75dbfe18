"""Rows of trials, for the pages that list some of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from codetaste.report.statistics import measures
from codetaste.report.statistics.merge import track_mode_of
from codetaste.report.tables.scores import measure_column
from codetaste.site.html.data_files import csv_file
from codetaste.site.site import trial_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.results.outcome import OutcomeFacet
    from codetaste.site.site import Site

SHOWN = (
    measures.ALIGNMENT,
    measures.PASS,
    measures.IFR,
    measures.PREC,
    measures.EDITED,
    measures.COST,
    measures.TIME,
)
COLUMNS = tuple(
    replace(measure_column(measure), decimals=0) if measure is measures.EDITED else measure_column(measure)
    for measure in SHOWN
)
"""The columns of ``SHOWN``; the lines of one trial are a whole number, unlike their mean."""
_HEADER = ("page", "run", "agent", "setting", "instance", "attempt", "repository", "language", "category")


@dataclass(frozen=True, slots=True)
class ListedTrial:
    """A trial in a table; ``values`` are those of ``SHOWN``, as its own page has them."""

    trial: TrialRecord
    address: str
    setting: str
    facet: OutcomeFacet
    labels: tuple[str, ...]
    values: tuple[float | None, ...]


def trial_rows(site: Site, trials: Iterable[TrialRecord]) -> list[ListedTrial]:
    """Return the rows of ``trials``, in their order."""
    return [
        ListedTrial(
            trial,
            trial_address(trial),
            track_mode_of(trial).title if trial.track else "",
            site.facet(trial),
            site.labels(trial),
            tuple(_number(measure.value(trial)) for measure in SHOWN),
        )
        for trial in trials
    ]


def trials_csv(rows: Sequence[ListedTrial]) -> bytes:
    """Return the rows as a file; ``codetaste report --table trials`` writes all columns."""
    names = [measure.name for measure in SHOWN]
    lines = [
        (
            row.address,
            row.trial.run,
            row.trial.agent,
            row.setting,
            row.trial.instance,
            row.trial.attempt,
            row.trial.repository,
            row.trial.language,
            row.trial.category,
            str(row.facet),
            " ".join(row.labels),
            *row.values,
        )
        for row in rows
    ]
    return csv_file((*_HEADER, "outcome", "labels", *names), lines)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)
