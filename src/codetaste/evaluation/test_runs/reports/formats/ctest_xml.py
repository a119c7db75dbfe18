"""``Testing/<date>/Test.xml`` of ``ctest -T Test``."""

from __future__ import annotations

from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.limits import CaseList, check_count
from codetaste.evaluation.test_runs.reports.xml_events import parse_xml

_STATES = {
    "passed": CaseStatus.PASSED,
    "failed": CaseStatus.FAILED,
    "notrun": CaseStatus.SKIPPED,
}
_MAX_NAME = 10_000


def read_ctest_xml(content: bytes) -> TestReport:
    """Read a report whose root is ``Site``; a test's name is its full name there.

    Raises:
        InvalidReport: it cannot be read, or breaks a limit.
    """
    reader = _Reader()
    parse_xml(content, reader.start, reader.end, reader.text)
    return make_report(reader.cases)


class _Reader:
    """State of the reader between two elements."""

    def __init__(self) -> None:
        self.cases: CaseList = []
        self._path: list[str] = []
        self._status: CaseStatus | None = None
        self._name = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Take the start of an element."""
        self._path.append(tag)
        if tag == "Test" and "Status" in attributes:
            self._status = _STATES.get(attributes["Status"], CaseStatus.ERROR)
            self._name = ""

    def text(self, data: str) -> None:
        """Take a piece of text."""
        if self._path[-2:] == ["Test", "FullName"] and len(self._name) < _MAX_NAME:
            self._name += data

    def end(self, tag: str) -> None:
        """Take the end of an element."""
        self._path.pop()
        if tag == "Test" and self._status is not None:
            self.cases.append((name_of(self._name.removeprefix("./")), self._status))
            check_count(self.cases)
            self._status = None
