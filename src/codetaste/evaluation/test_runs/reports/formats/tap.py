"""The Test Anything Protocol, versions 12 to 14, with subtests as Node's test runner and tap write them."""

from __future__ import annotations

import re

from codetaste.core.text import plural, printable
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.limits import (
    MAX_NOTES,
    CaseList,
    InvalidReport,
    ReportProblem,
    check_count,
    check_depth,
    check_size,
)

_POINT = re.compile(
    r"(?P<not>not )?ok\b[ \t]*(?P<number>\d{0,9})(?:[ \t]+-)?[ \t]*(?P<text>.*?)"
    r"(?:[ \t]\#[ \t]*(?P<directive>(?i:skip|todo))\b.*)?"
)
_SUBTEST = re.compile(r"#[ \t]*Subtest:[ \t]*(.*)")
_PLAN = re.compile(r"1\.\.(\d{1,9})\b.*")
_SUITE = re.compile(r"type:[ \t]*['\"]?suite['\"]?[ \t]*")
_ESCAPED = re.compile(r"\\([\\#])")
_INDENT = 4
_MAX_LINE_CHARS = 10_000


def read_tap(content: bytes) -> TestReport:
    """Read the test points; a test's name is its own after those of the subtests around it.

    The point of a subtest is a test too, unless its YAML says that it is a suite, as Node's does. Todo counts
    as skipped. Lines that are no TAP are skipped.

    Raises:
        InvalidReport: there is no test point and no plan, or a limit is broken.
    """
    check_size(content)
    reader = _Reader()
    for line in content.decode("utf-8", "replace").split("\n"):
        reader.line(line[:_MAX_LINE_CHARS].rstrip())
    reader.flush()
    if not reader.cases and not reader.planned:
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no test point and no plan of TAP")
    if reader.planned and reader.planned != reader.points:
        reader.notes.append(f"the plan says {plural(reader.planned, 'test')}, there are {reader.points:,}")
    return make_report(reader.cases, reader.notes[:MAX_NOTES])


class _Reader:
    """State of the reader between two lines; a point waits for the YAML that may follow it."""

    def __init__(self) -> None:
        self.cases: CaseList = []
        self.notes: list[str] = []
        self.planned = 0
        self.points = 0
        self._names: list[str] = []
        """Names of the open subtests by depth."""
        self._point: tuple[str, CaseStatus] | None = None
        self._yaml: int | None = None
        """Indentation of the open YAML block."""

    def line(self, line: str) -> None:
        """Take the next line."""
        text = line.lstrip(" ")
        indent = len(line) - len(text)
        if self._yaml is not None:
            if text == "..." and indent <= self._yaml:
                self._yaml = None
            elif _SUITE.fullmatch(text):
                self._point = None
            return
        if text == "---":
            self._yaml = indent
            return
        depth = indent // _INDENT
        if subtest := _SUBTEST.fullmatch(text):
            self.flush()
            check_depth(depth)
            self._names[depth:] = [*[""] * (depth - len(self._names)), _unescape(subtest[1])]
        elif point := _POINT.fullmatch(text):
            self.flush()
            check_depth(depth)
            self.points += depth == 0
            name = name_of(
                *self._names[:depth], _unescape(point["text"]) or f"{point['number'] or self.points}"
            )
            status = CaseStatus.FAILED if point["not"] else CaseStatus.PASSED
            self._point = (name, CaseStatus.SKIPPED if point["directive"] else status)
            del self._names[depth:]
        elif depth == 0 and (plan := _PLAN.fullmatch(text)):
            self.planned += int(plan[1])
        elif text.startswith("Bail out!"):
            self.notes.append(printable(text, 120))

    def flush(self) -> None:
        """Add the point whose YAML, if any, is read."""
        if self._point is not None:
            self.cases.append(self._point)
            check_count(self.cases)
            self._point = None


def _unescape(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)
