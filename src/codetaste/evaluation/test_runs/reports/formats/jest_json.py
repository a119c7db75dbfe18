"""``jest --json`` and ``vitest --reporter=json``."""

from __future__ import annotations

from typing import Any

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.json_text import find_json_object, objects_in, text_in, texts_in
from codetaste.evaluation.test_runs.reports.limits import CaseList, InvalidReport, ReportProblem, check_count

_STATES = {
    "passed": CaseStatus.PASSED,
    "focused": CaseStatus.PASSED,
    "failed": CaseStatus.FAILED,
    "pending": CaseStatus.SKIPPED,
    "skipped": CaseStatus.SKIPPED,
    "todo": CaseStatus.SKIPPED,
    "disabled": CaseStatus.SKIPPED,
}
_TESTBED = "/testbed/"


def read_jest_json(content: bytes) -> TestReport:
    """Read a report with ``testResults``.

    A test's name is its file below the testbed, the titles around it, its title. A file that fails without a
    failed test (it cannot be loaded) is a test with the status error.

    Raises:
        InvalidReport: it cannot be read, or breaks a limit.
    """
    return jest_report(find_json_object(content))


def jest_report(data: dict[str, Any]) -> TestReport:
    """Read a report that is parsed already.

    Raises:
        InvalidReport: it is none, or breaks a limit.
    """
    if not isinstance(data.get("testResults"), list):
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no list testResults")
    cases: CaseList = []
    errors = 0
    for file in objects_in(data, "testResults"):
        path = text_in(file, "name").removeprefix(_TESTBED)
        statuses = set()
        for test in objects_in(file, "assertionResults"):
            status = _STATES.get(text_in(test, "status"), CaseStatus.ERROR)
            cases.append((name_of(path, *texts_in(test, "ancestorTitles"), text_in(test, "title")), status))
            statuses.add(status)
            check_count(cases)
        if text_in(file, "status") == "failed" and statuses.isdisjoint({CaseStatus.FAILED, CaseStatus.ERROR}):
            cases.append((name_of(path), CaseStatus.ERROR))
            errors += 1
            check_count(cases)
    declared = data.get("numTotalTests")
    notes = []
    if type(declared) is int and declared != len(cases) - errors:
        notes.append(f"it declares {plural(declared, 'test')} and has {len(cases) - errors:,}")
    return make_report(cases, notes)
