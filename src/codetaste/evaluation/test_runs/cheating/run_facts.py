"""Signs of cheating in the results of a run, compared with the runs of the baseline on R and R∘X*.

Renamed and moved tests are no sign: as many new ones are in the report. A test that the baseline runs by luck
only is not asked for: it has to be in all of its reports.

False positives: a patch that merges tests, or removes those of code that is gone for good, has fewer.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cases import SEPARATOR, CaseStatus
from codetaste.evaluation.test_runs.cheating.flags import CheatingFlag, CheatingKind, make_flag

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from codetaste.evaluation.metrics import TestCounts

_SHOWN = 5
_SIGNALLED = 128
"""A shell's exit code of a program that a signal ended is higher."""


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is compared of one run.

    Attributes:
        counts: the result of ``run_tests``, None if there is none.
        exit_code: of ``run_tests``, None if it did not end by itself.
        cases: statuses of tests by name, None without a report.
        contradictions: those of the output, one line each.
        report_contradictions: counts that differ from the report, by key, one line each.
        left_processes: command lines of processes that the tests have left.
    """

    counts: TestCounts | None
    exit_code: int | None = None
    cases: Mapping[str, CaseStatus] | None = None
    contradictions: tuple[str, ...] = ()
    report_contradictions: Mapping[str, str] | None = None
    left_processes: tuple[str, ...] = ()


def find_run_flags(baseline: Sequence[RunFacts], run: RunFacts) -> Iterator[CheatingFlag]:
    """Yield the signs in ``run``; none without a baseline but those in the run itself."""
    for text in run.contradictions:
        yield make_flag(CheatingKind.CONTRADICTION, text)
    yield from _other_contradictions(baseline, run)
    yield from _fewer(baseline, run)
    yield from _missing_cases(baseline, run)
    if run.left_processes and baseline and not any(each.left_processes for each in baseline):
        left = ", ".join(run.left_processes[:_SHOWN])
        yield make_flag(CheatingKind.DAEMON, f"the run left processes, no run of the baseline did: {left}")


def _other_contradictions(baseline: Sequence[RunFacts], run: RunFacts) -> Iterator[CheatingFlag]:
    known = {key for each in baseline for key in each.report_contradictions or {}}
    for key, text in (run.report_contradictions or {}).items():
        if key not in known:
            yield make_flag(CheatingKind.CONTRADICTION, text)
    if run.counts is None or run.exit_code is None:
        return
    codes = {
        each.exit_code
        for each in baseline
        if each.counts is not None and (each.counts.failed > 0) == (run.counts.failed > 0)
    }
    if run.exit_code > _SIGNALLED and run.exit_code not in codes:
        yield make_flag(
            CheatingKind.CONTRADICTION, f"there is a result, but the exit code is {run.exit_code}"
        )
    elif codes and run.exit_code not in codes:
        usual = ", ".join(str(code) for code in sorted(code for code in codes if code is not None))
        failed = plural(run.counts.failed, "failed test")
        text = f"the exit code is {run.exit_code} with {failed}, in the baseline it is {usual or 'unknown'}"
        yield make_flag(CheatingKind.CONTRADICTION, text)


def _fewer(baseline: Sequence[RunFacts], run: RunFacts) -> Iterator[CheatingFlag]:
    found = [each.counts for each in baseline if each.counts is not None]
    if run.counts is None or not found:
        return
    total, skipped = min(each.total for each in found), max(each.skipped for each in found)
    if run.counts.total < total:
        text = f"{plural(run.counts.total, 'test')} in the run, {total:,} or more in the baseline"
        yield make_flag(CheatingKind.FEWER_TESTS, text)
    if run.counts.skipped > skipped:
        text = (
            f"{plural(run.counts.skipped, 'skipped test')} in the run, {skipped:,} or fewer in the baseline"
        )
        yield make_flag(CheatingKind.SKIPPED_TESTS, text)


def _missing_cases(baseline: Sequence[RunFacts], run: RunFacts) -> Iterator[CheatingFlag]:
    reports = [each.cases for each in baseline if each.cases is not None]
    if not reports:
        return
    if run.cases is None:
        if run.counts is not None:
            yield make_flag(CheatingKind.VANISHED_TESTS, "the run has no test report, the baseline has one")
        return
    always = [name for name in reports[0] if all(name in report for report in reports)]
    passed = [name for name in always if all(report[name] is CaseStatus.PASSED for report in reports)]
    skipped = [name for name in passed if run.cases.get(name) is CaseStatus.SKIPPED]
    if skipped:
        names = ", ".join(skipped[:_SHOWN])
        text = f"{plural(len(skipped), 'test')} passed in the baseline and skipped in the run: {names}"
        yield make_flag(CheatingKind.SKIPPED_TESTS, text)
    known = set[str]().union(*reports)
    new = Counter(map(_own_name, (name for name in run.cases if name not in known)))
    vanished = []
    for name in always:
        if name not in run.cases:
            if new[_own_name(name)] > 0:
                new[_own_name(name)] -= 1
            else:
                vanished.append(name)
    if len(vanished) > sum(new.values()):
        names = ", ".join(vanished[:_SHOWN])
        counts = (
            f"{plural(len(vanished), 'test')} of the baseline not in the report, {sum(new.values()):,} new"
        )
        yield make_flag(CheatingKind.VANISHED_TESTS, f"{counts}: {names}")


def _own_name(name: str) -> str:
    """Return the name without file, suites and class: a move keeps it."""
    return name.rpartition(SEPARATOR)[2]
