"""``mocha --reporter json``."""

from __future__ import annotations

from typing import Any

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.json_text import find_json_object, objects_in, text_in
from codetaste.evaluation.test_runs.reports.limits import CaseList, InvalidReport, ReportProblem, check_count

_LISTS = {"passes": CaseStatus.PASSED, "failures": CaseStatus.FAILED, "pending": CaseStatus.SKIPPED}
_TESTBED = "/testbed/"


def read_mocha_json(content: bytes) -> TestReport:
    """Read a report with ``stats``, ``passes``, ``failures`` and ``pending``; a failed hook is a test too.

    A test's name is its file below the testbed (older releases do not give it) and its full title.

    Raises:
        InvalidReport: it cannot be read, or breaks a limit.
    """
    return mocha_report(find_json_object(content))


def mocha_report(data: dict[str, Any]) -> TestReport:
    """Read a report that is parsed already.

    Raises:
        InvalidReport: it is none, or breaks a limit.
    """
    stats = data.get("stats")
    if not isinstance(stats, dict) or not isinstance(data.get("passes"), list):
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no stats and no list passes")
    cases: CaseList = []
    notes = []
    for key, status in _LISTS.items():
        tests = objects_in(data, key)
        for test in tests:
            path = text_in(test, "file").removeprefix(_TESTBED)
            cases.append((name_of(path, text_in(test, "fullTitle") or text_in(test, "title")), status))
            check_count(cases)
        declared = stats.get(key)
        if type(declared) is int and declared != len(tests):
            notes.append(f"its stats say {plural(declared, 'test')} in {key}, it has {len(tests):,}")
    return make_report(cases, notes)
