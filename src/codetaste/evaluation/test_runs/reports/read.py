"""Reads a test report of any known format: the content says which one it is, not the name of the file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from codetaste.evaluation.test_runs.cases import TestReport, merge_reports
from codetaste.evaluation.test_runs.reports.formats.ctest_xml import read_ctest_xml
from codetaste.evaluation.test_runs.reports.formats.go_json import read_go_json
from codetaste.evaluation.test_runs.reports.formats.jest_json import jest_report
from codetaste.evaluation.test_runs.reports.formats.junit_xml import read_junit_xml
from codetaste.evaluation.test_runs.reports.formats.libtest import read_libtest
from codetaste.evaluation.test_runs.reports.formats.mocha_json import mocha_report
from codetaste.evaluation.test_runs.reports.formats.tap import read_tap
from codetaste.evaluation.test_runs.reports.json_text import find_json_object
from codetaste.evaluation.test_runs.reports.limits import InvalidReport, ReportProblem, check_size
from codetaste.evaluation.test_runs.reports.xml_events import parse_xml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_SEARCHED_BYTES = 64 * 1024
"""How much of the beginning decides on the format."""
_XML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*+(?:<\?xml[^>]*+>)?(?:\s++|<!--(?:[^-]|-(?!->))*+-->)*+<(testsuites?|Site)\b"
)
_ANY_XML = re.compile(rb"(?:\xef\xbb\xbf)?\s*+<[?!\w]|\xff\xfe|\xfe\xff")
_GO_EVENT = re.compile(rb'^\{(?:"\w+":"[^"\\\n]*+",)*?"Action":"[a-z-]+"', re.MULTILINE)
_TAP = re.compile(rb"^(?:TAP version \d|1\.\.\d)", re.MULTILINE)
_LIBTEST = re.compile(rb"^running \d+ tests?\r?$", re.MULTILINE)
_JSON = re.compile(rb"^[ \t]*\{", re.MULTILINE)


def read_report(content: bytes) -> TestReport:
    """Read one report.

    Raises:
        InvalidReport: the format is unknown, the content cannot be read, or breaks a limit.
    """
    check_size(content)
    start = content[:_SEARCHED_BYTES]
    if xml := _XML.match(start):
        return read_ctest_xml(content) if xml[1] == b"Site" else read_junit_xml(content)
    if _ANY_XML.match(start):
        return read_junit_xml(_checked_xml(content))
    for mark, reader in _TEXT_FORMATS:
        if mark.search(start):
            return reader(content)
    raise InvalidReport(ReportProblem.UNKNOWN_FORMAT, "it is no test report of a known format")


def read_reports(files: Iterable[tuple[str, bytes]]) -> tuple[TestReport, dict[str, InvalidReport]]:
    """Read several files of one run, given with their paths, as one report.

    Returns:
        All tests of the readable files, and why the others cannot be read, by path.
    """
    reports: list[TestReport] = []
    faults: dict[str, InvalidReport] = {}
    for path, content in files:
        try:
            reports.append(read_report(content))
        except InvalidReport as fault:
            faults[path] = fault
    return merge_reports(reports), faults


def _checked_xml(content: bytes) -> bytes:
    """Return XML whose root was not found at once, after all checks.

    Raises:
        InvalidReport: it cannot be read, has a document type, or its root is no report's.
    """
    roots: list[str] = []

    def start(name: str, _: dict[str, str]) -> None:
        if not roots:
            roots.append(name)

    parse_xml(content, start, lambda _: None)
    if roots[0] not in {"testsuites", "testsuite"}:
        raise InvalidReport(
            ReportProblem.UNKNOWN_FORMAT, f"the XML element {roots[0]!r} begins no test report"
        )
    return content


def _read_json(content: bytes) -> TestReport:
    data = find_json_object(content)
    if "testResults" in data:
        return jest_report(data)
    if "stats" in data:
        return mocha_report(data)
    raise InvalidReport(ReportProblem.UNKNOWN_FORMAT, "the JSON is no report of jest, vitest or mocha")


_TEXT_FORMATS: tuple[tuple[re.Pattern[bytes], Callable[[bytes], TestReport]], ...] = (
    (_GO_EVENT, read_go_json),
    (_TAP, read_tap),
    (_LIBTEST, read_libtest),
    (_JSON, _read_json),
)
