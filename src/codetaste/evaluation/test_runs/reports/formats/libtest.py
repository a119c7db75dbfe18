"""The text that ``cargo test`` prints: for crates whose tests have no report of nextest."""

from __future__ import annotations

import re

from codetaste.core.text import plural
from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.limits import (
    CaseList,
    InvalidReport,
    ReportProblem,
    check_count,
    check_size,
)

_TEST = re.compile(r"test (?P<name>\S.*?) \.\.\. (?P<status>ok|FAILED|ignored)(?:[ ,].*)?")
_PROGRAM = re.compile(r" +Running (?:unittests )?(?P<path>\S+) \(\S+\)| +Doc-tests (?P<crate>\S+)")
_SUMMARY = re.compile(r"test result: \w+\. (\d{1,9}) passed; (\d{1,9}) failed; (\d{1,9}) ignored;.*")
_STATES = {"ok": CaseStatus.PASSED, "FAILED": CaseStatus.FAILED, "ignored": CaseStatus.SKIPPED}
_MAX_LINE_CHARS = 10_000


def read_libtest(content: bytes) -> TestReport:
    """Read the lines of tests; a test's name is its program's source file, where it is printed, and its path.

    What a test prints with ``--nocapture`` may hide its line; a note says how many are missing.

    Raises:
        InvalidReport: there is no line of a test and no summary, or a limit is broken.
    """
    check_size(content)
    cases: CaseList = []
    program, summaries, declared = "", 0, 0
    lines = (line[:_MAX_LINE_CHARS].rstrip() for line in content.decode("utf-8", "replace").split("\n"))
    for line in lines:
        if test := _TEST.fullmatch(line):
            cases.append((name_of(program, test["name"]), _STATES[test["status"]]))
            check_count(cases)
        elif start := _PROGRAM.fullmatch(line):
            program = start["path"] or f"doc {start['crate']}"
        elif summary := _SUMMARY.fullmatch(line):
            summaries += 1
            declared += sum(map(int, summary.groups()))
    if not cases and not summaries:
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no test of cargo test")
    differ = summaries and declared != len(cases)
    notes = [f"its summaries say {plural(declared, 'test')}, there are {len(cases):,}"] if differ else []
    return make_report(cases, notes)
