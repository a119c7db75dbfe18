"""Tables of facts that the paper gives in prose (CodeTaste §4.2, §4.4): cost, time, budgets, activity.

Also the statuses of all trials, and pass@k over the attempts at an instance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import FinishReason
from codetaste.core.text import plural
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.report.statistics import measures
from codetaste.report.statistics.intervals import mean_interval, pass_at_k
from codetaste.report.statistics.measures import Unit
from codetaste.report.statistics.merge import track_mode_of
from codetaste.report.statistics.scripted import scripted_notes
from codetaste.report.table import Cell, Column, Row, Table, interval_legend
from codetaste.report.tables.scores import MODE_COLUMN, TRIALS_COLUMN, measure_column, missing_values_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from codetaste.evaluation.trials.records import TrialRecord
    from codetaste.report.statistics.view import AggregatedTrials

_SPENT = (measures.COST, measures.TIME, measures.TURNS, measures.TOOL_CALLS)
_ACTIVITY = (measures.RAN_TESTS, measures.TEST_RUNS, measures.MADE_BULK_EDITS, measures.BULK_EDITS)
_MAX_REASONS = 12
"""Reasons that are listed below the counts."""
_ENDINGS = {FinishReason.BUDGET_EXCEEDED: "Budget hit", FinishReason.TIMEOUT: "Timed out"}
_STATUSES = {
    TrialStatus.SCORED: "Scored",
    TrialStatus.FAILED: "Failed",
    TrialStatus.INFRASTRUCTURE: "Infrastructure",
    TrialStatus.REFUSED: "Refused",
    TrialStatus.DOES_NOT_APPLY: "Does not apply",
    TrialStatus.PARTIAL: "Partial scan",
    TrialStatus.NOT_SCORED: "Not scored yet",
    TrialStatus.UNREADABLE: "Unreadable",
}


def effort_table(view: AggregatedTrials) -> Table:
    """Cost and endings of trials, and how often agents ran tests and replaced text in bulk."""
    columns = (
        MODE_COLUMN,
        TRIALS_COLUMN,
        *(Column(reason, title, Unit.COUNT) for reason, title in _ENDINGS.items()),
        *(measure_column(measure) for measure in _SPENT),
        *(measure_column(measure) for measure in _ACTIVITY),
    )
    rows = []
    for agent, track_mode, trials in view.groups():
        endings = [
            sum(1 for record in trials if record.metadata.finish_reason == reason) for reason in _ENDINGS
        ]
        means = [view.interval(trials, measure) for measure in (*_SPENT, *_ACTIVITY)]
        rows.append(Row((track_mode.title, len(trials), *endings, *means), agent))
    shown = tuple(rows)
    notes = (
        *scripted_notes(view.listed),
        *interval_legend(shown),
        *missing_values_note(view, (*_SPENT, *_ACTIVITY)),
    )
    title = "Cost of trials and activity of agents: means of a trial, and shares of trials"
    return Table("effort", title, columns, shown, notes, view.aggregation, "agent")


def counts_table(view: AggregatedTrials) -> Table:
    """Trials by status: those that score 0, have no score, or are dropped as published."""
    columns = (
        MODE_COLUMN,
        TRIALS_COLUMN,
        *(Column(status, title, Unit.COUNT) for status, title in _STATUSES.items()),
        Column("passed", "PASS measured", Unit.COUNT),
        Column("ifr", "IFR measured", Unit.COUNT),
        Column("prec", "PREC measured", Unit.COUNT),
        Column("dropped", "Dropped as published", Unit.COUNT),
        Column("absent", "Instances without a trial", Unit.COUNT),
        Column("flagged", "With flagged rules", Unit.COUNT),
    )
    rows = []
    everywhere = defaultdict(set)
    for record in view.trials.agents:
        everywhere[track_mode_of(record)].add(record.instance)
    for agent, track_mode, trials in view.groups():
        by_status = Counter(record.scores.status for record in trials)
        measured = [
            sum(1 for record in trials if measure.value(record) is not None)
            for measure in (measures.PASS, measures.IFR, measures.PREC)
        ]
        absent = len(everywhere[track_mode] - {record.instance for record in trials})
        statuses = [by_status[status] for status in _STATUSES]
        dropped = sum(record.published is None for record in trials)
        flagged = sum(bool(record.scores.flagged_rules) for record in trials)
        counts = (*statuses, *measured, dropped, absent, flagged)
        rows.append(Row((track_mode.title, len(trials), *counts), agent))
    notes = (
        "strict: failed, refused and inapplicable trials score 0; others without a value are in no mean",
        "published: all trials that are dropped as published are in no mean",
        "with flagged rules: some of the additive rules match only code without effect",
        "instances without a trial: other agents have a trial of these in the same track and mode",
        *_reasons(view),
    )
    return Table("counts", "Trials by status", columns, tuple(rows), notes, "", "agent")


def _reasons(view: AggregatedTrials) -> list[str]:
    """Return the reasons and notes of trials with their counts, the most frequent first."""
    counts = Counter(
        text
        for record in view.listed
        for text in {
            f"{_STATUSES[record.scores.status].lower()}: {record.scores.reason}"
            if record.scores.reason
            else "",
            *record.scores.notes,
        }
    )
    del counts[""]
    listed = [f"{plural(number, 'trial')}: {text}" for text, number in counts.most_common(_MAX_REASONS)]
    more = len(counts) - len(listed)
    return [*listed, f"and {plural(more, 'other reason')} (scores.json of each trial)"] if more else listed


def attempts_table(view: AggregatedTrials) -> Table | None:
    """Return pass@k: the probability that one of k attempts passes, as a mean over instances.

    None where no instance has several attempts.
    """
    groups = [(agent, track_mode, _attempts(view, trials)) for agent, track_mode, trials in view.groups()]
    most = max((len(each) for _, _, attempts in groups for each in attempts.values()), default=0)
    if most < 2:  # noqa: PLR2004 - needs several attempts
        return None
    ks = sorted({1, most, *(2**power for power in range(1, most.bit_length()) if 2**power < most)})
    repository = {record.instance: record.repository or record.instance for record in view.trials.agents}
    rows = []
    for agent, track_mode, attempts in groups:
        cells: list[Cell] = [len(attempts), max((len(each) for each in attempts.values()), default=0)]
        for k in ks:
            enough = {instance: each for instance, each in attempts.items() if len(each) >= k}
            chances = [pass_at_k(len(each), sum(value > 0 for value in each), k) for each in enough.values()]
            cells.append(mean_interval(chances, [repository[instance] for instance in enough]))
        rows.append(Row((track_mode.title, *cells), agent))
    columns = (
        MODE_COLUMN,
        Column("instances", "Instances", Unit.COUNT),
        Column("attempts", "Attempts", Unit.COUNT),
        *(Column(f"pass_at_{k}", f"pass@{k}", Unit.FRACTION) for k in ks),
    )
    shown = tuple(rows)
    title = "pass@k: the chance that at least one of k attempts passes the tests, over instances"
    notes = (*interval_legend(shown), "pass@k: over instances with at least k attempts whose PASS is known")
    return Table("attempts", title, columns, shown, notes, view.aggregation, "agent")


def _attempts(view: AggregatedTrials, trials: Sequence[TrialRecord]) -> dict[str, list[float]]:
    """Return for each instance the PASS values of its attempts, where known."""
    sample = view.sample(trials, measures.PASS)
    attempts: defaultdict[str, list[float]] = defaultdict(list)
    for value, record in zip(sample.values, sample.records, strict=True):
        attempts[record.instance].append(value)
    return dict(attempts)
