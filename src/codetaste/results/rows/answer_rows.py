"""Rows of the trials of SWE-Refactor: the rows of its own tables, their scores, their jobs."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from codetaste.core.text import printable
from codetaste.results.outcome import facet_of_answer
from codetaste.results.roots import roots_by_run
from codetaste.results.rows.job_totals import job_totals
from codetaste.results.rows.trial import TrialResult
from codetaste.swe_refactor.report.failures.classify import classify_failure
from codetaste.swe_refactor.report.merge import original_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from codetaste.results.read import RunResults
    from codetaste.results.run_jobs import RunJobs
    from codetaste.swe_refactor.report.trial_row import TrialRow

_MAX_TEXT = 500


def answer_rows(results: RunResults, jobs: Sequence[RunJobs]) -> Iterator[TrialResult]:
    """Yield a row for each trial of SWE-Refactor.

    Args:
        results: the trials.
        jobs: of the runs, in the order of ``results.roots``.
    """
    by_root = {each.root: each for each in jobs}
    by_run = {name: by_root[root] for name, root in roots_by_run(results.roots).items()}
    for row in results.answers.rows:
        run = by_run.get(row.run)
        labels = results.studies.of_answer(row, run.root).label_words if run else ()
        yield replace(_row(row, run), failure_labels=labels)


def _row(row: TrialRow, run: RunJobs | None) -> TrialResult:
    job = run.jobs.get(original_key(row).answer_key) if run is not None else None
    return TrialResult(
        run=printable(row.run),
        folder=None,
        benchmark="swe-refactor",
        agent=printable(row.by.title),
        strategy=printable(row.strategy),
        model=printable(row.model_label or row.model),
        scripted=row.scripted,
        instance=printable(row.instance),
        repository=printable(row.project) or None,
        language="Java",
        category=printable(row.type),
        attempt=row.attempt,
        outcome=facet_of_answer(row.outcome).value,
        status=row.outcome.value,
        reason=printable(row.detail, _MAX_TEXT) or None,
        cause=job.cause if job is not None else None,
        **_verdicts(row),
        turns=row.turns,
        cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        known_cost_usd=None if row.cost_usd is None else float(row.cost_usd),
        time_s=row.wall_s,
        **job_totals([job] if job is not None else []),
    )


def _verdicts(row: TrialRow) -> dict[str, Any]:
    """Return the verdicts of a trial that was judged; all are unknown of one that was not."""
    if not row.counted:
        return {}
    tests = row.score.tests if row.score is not None else None
    bleu = row.score.codebleu if row.score is not None else None
    parts = {} if bleu is None else {f"codebleu_{name}": value for name, value in asdict(bleu).items()}
    parts.pop("codebleu_score", None)
    return {
        "compiles": tests.compiles if tests is not None else None,
        "compiles_and_passes": row.compiles_and_passes,
        "verified": row.verified,
        "published_check": row.published_check,
        "codebleu": row.similarity,
        "failure": None if row.success else (row.failure or classify_failure(row.outcome)).value,
        "tests_passed": tests.passed if tests is not None else None,
        "tests_failed": tests.failed if tests is not None else None,
        "tests_skipped": tests.skipped if tests is not None else None,
        "tests_total": tests.passed + tests.failed + tests.skipped if tests is not None else None,
        **parts,
    }
