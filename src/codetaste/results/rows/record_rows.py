"""Rows of the trials of CodeTaste: their records, the numbers of the report's tables, their jobs."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.evaluation.trials.records import TrialStatus
from codetaste.report.statistics import measures
from codetaste.report.statistics.aggregate import Aggregation
from codetaste.report.statistics.measures import Measure
from codetaste.report.statistics.scripted import is_scripted
from codetaste.report.statistics.view import aggregate_trials
from codetaste.results.outcome import reason_of_record
from codetaste.results.roots import root_of
from codetaste.results.rows.job_totals import job_totals
from codetaste.results.rows.schema import columns_of
from codetaste.results.rows.trial import TrialResult
from codetaste.results.rows.trial_files import read_trial_files
from codetaste.results.trial_outcomes import steps_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.evaluation.trials.records import TrialRecord, TrialScores
    from codetaste.report.statistics.view import AggregatedTrials
    from codetaste.results.read import RunResults
    from codetaste.results.run_jobs import RunJobs

MEASURES: tuple[Measure, ...] = tuple(each for each in vars(measures).values() if isinstance(each, Measure))
"""All measures of the report; each is a column."""
_SCORES = tuple(each for each in MEASURES if each.is_score)
_TYPES = {column.name: column.type for column in columns_of(TrialResult)}


def record_rows(results: RunResults, jobs: Sequence[RunJobs]) -> Iterator[TrialResult]:
    """Yield a row for each trial of CodeTaste, those of agents before those of pseudo agents. Blocking.

    Args:
        results: the trials.
        jobs: of the runs, in the order of ``results.roots``.
    """
    views = [aggregate_trials(results.trials, each) for each in (Aggregation.STRICT, Aggregation.PUBLISHED)]
    by_root = {each.root: each for each in jobs}
    real = {root: os.path.realpath(root) for root in by_root}
    for record in (*results.trials.agents, *results.trials.pseudo):
        root = root_of(record, by_root)
        row = _row(record, views, by_root[root], real[root])
        yield replace(row, failure_labels=results.studies.of(record).label_words)


def _row(record: TrialRecord, views: Sequence[AggregatedTrials], run: RunJobs, real_root: str) -> TrialResult:
    scores, metadata = record.scores, record.metadata
    files = read_trial_files(record, real_root)
    steps = steps_of(record, run)
    has_folder = record.folder != run.root
    return TrialResult(
        run=record.run,
        folder=printable(record.folder.relative_to(run.root).as_posix(), 1000) if has_folder else None,
        benchmark="codetaste",
        agent=record.agent,
        model=metadata.model or None,
        harness=metadata.harness or None,
        source=metadata.source.value if has_folder else None,
        scripted=is_scripted(record),
        pseudo=record.pseudo,
        track=record.track or None,
        mode=record.mode or None,
        instance=record.instance,
        repository=record.repository or None,
        language=record.language or None,
        category=record.category or None,
        attempt=record.attempt,
        outcome=steps.outcome.value,
        status=scores.status.value,
        reason=reason_of_record(record) or metadata.message or None,
        finish_reason=metadata.finish_reason or None,
        cause=steps.last.cause if steps.last is not None else None,
        **_measured(record),
        **_aggregated(record, views),
        ifr_unflagged=scores.ifr_unflagged,
        flagged_rules=scores.flagged_rules if scores.status is TrialStatus.SCORED else None,
        **_tests(scores),
        refusals=metadata.refusals,
        known_cost_usd=metadata.known_cost_usd,
        scored_by=scores.scored_by or None,
        rules_sha256=scores.rules_sha256 or None,
        notes=scores.notes,
        **files.values,
        **job_totals(steps.jobs, files.tokens),
    )


def _measured(record: TrialRecord) -> dict[str, Any]:
    """Return the values of the measures by name, without those that the report leaves out as invalid."""
    found: dict[str, Any] = {}
    for measure in MEASURES:
        value = measure.value(record)
        if value is not None and measure.accepts(value):
            found[measure.name] = _TYPES[measure.name](value)
    return found


def _aggregated(record: TrialRecord, views: Sequence[AggregatedTrials]) -> dict[str, Any]:
    """Return what a trial contributes to the means of the strict and of the published tables."""
    strict, published = views
    return {
        **{f"strict_{each.name}": strict.value(record, each) for each in _SCORES},
        **{f"published_{each.name}": published.value(record, each) for each in (*_SCORES, measures.COST)},
    }


def _tests(scores: TrialScores) -> dict[str, Any]:
    tests = scores.tests
    return {
        "tests_passed": tests and tests.passed,
        "tests_failed": tests and tests.failed,
        "tests_skipped": tests and tests.skipped,
        "tests_total": tests and tests.total,
        "tests_error": (tests and tests.error and printable(tests.error)) or None,
        "test_flags": scores.test_flags if tests else None,
    }
