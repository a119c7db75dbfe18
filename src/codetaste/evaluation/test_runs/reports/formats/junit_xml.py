"""JUnit XML, as pytest, surefire, gradle, nextest, ctest, jest-junit, mocha, Node and others write it."""

from __future__ import annotations

from codetaste.core.text import printable
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.limits import MAX_NOTES, CaseList, check_count
from codetaste.evaluation.test_runs.reports.xml_events import parse_xml

_OUTCOMES = {"failure": CaseStatus.FAILED, "error": CaseStatus.ERROR, "skipped": CaseStatus.SKIPPED}
_SEVERITY = [CaseStatus.PASSED, CaseStatus.SKIPPED, CaseStatus.FAILED, CaseStatus.ERROR]
_STATES = {
    "fail": CaseStatus.FAILED,
    "failed": CaseStatus.FAILED,
    "notrun": CaseStatus.SKIPPED,
    "disabled": CaseStatus.SKIPPED,
    "skipped": CaseStatus.SKIPPED,
}
"""Values of a test's attribute ``status``: of ctest and GoogleTest."""
_PROGRAM_SUITES = {"pytest", "(empty)"}
"""Suites that are named after the program or after nothing."""
_TESTBED = "/testbed/"


def read_junit_xml(content: bytes) -> TestReport:
    """Read a report whose root is ``testsuites`` or ``testsuite``.

    A test's name is its file (where the test has the attribute), the suites around it unless the class
    repeats them, its class and its own name. Of several outcomes of one test the worst counts; repetitions
    that surefire and nextest made of a test that passed in the end (``flakyFailure``) do not. The numbers
    that suites declare are not read: jest-junit and mocha-junit-reporter count what they leave out.

    Raises:
        InvalidReport: it cannot be read, or breaks a limit.
    """
    reader = _Reader()
    parse_xml(content, reader.start, reader.end)
    return make_report(reader.cases, reader.notes)


class _Reader:
    """State of the reader between two elements."""

    def __init__(self) -> None:
        self.cases: CaseList = []
        self.notes: list[str] = []
        self._suites: list[str] = []
        self._case: str | None = None
        self._status = CaseStatus.PASSED

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""
        if self._case is not None:
            if tag in _OUTCOMES:
                self._status = max(self._status, _OUTCOMES[tag], key=_SEVERITY.index)
        elif tag == "testsuite":
            self._suites.append(attributes.get("name", ""))
        elif tag == "testcase":
            self._case = self._name(attributes)
            self._status = _STATES.get(attributes.get("status", "").lower(), CaseStatus.PASSED)
        elif tag == "error" and self._suites:
            self._note(f"the suite {printable(self._suites[-1], 80)!r} has an error outside of its tests")

    def end(self, tag: str) -> None:
        """Take the end of an element."""
        if tag == "testcase" and self._case is not None:
            self.cases.append((self._case, self._status))
            check_count(self.cases)
            self._case = None
        elif tag == "testsuite" and self._suites and self._case is None:
            self._suites.pop()

    def _note(self, text: str) -> None:
        if len(self.notes) < MAX_NOTES:
            self.notes.append(text)

    def _name(self, attributes: dict[str, str]) -> str:
        group = attributes.get("classname", "")
        suites = [
            suite for suite in self._suites if suite not in _PROGRAM_SUITES and not group.startswith(suite)
        ]
        return name_of(
            attributes.get("file", "").removeprefix(_TESTBED), *suites, group, attributes.get("name", "")
        )
