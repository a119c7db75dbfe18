"""``go test -json``: one event a line."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport, make_report, name_of
from codetaste.evaluation.test_runs.reports.json_text import text_in
from codetaste.evaluation.test_runs.reports.limits import (
    MAX_CASES,
    CaseList,
    InvalidReport,
    ReportProblem,
    check_count,
    check_size,
)

_ENDS = {"pass": CaseStatus.PASSED, "fail": CaseStatus.FAILED, "skip": CaseStatus.SKIPPED}
_OUTPUT = b'"Action":"output"'
"""Inside a text the quotes would be escaped, so no other event has it."""
_MAX_LINE_BYTES = 64 * 1024
_NOT_BUILT = re.compile(rb"^FAIL\t(\S{1,1000}) \[(?:build|setup) failed\]$", re.MULTILINE)
"""What go test prints between the events before Go 1.24; what tests print is in an event."""


def read_go_json(content: bytes) -> TestReport:
    """Read the events; lines that are none, such as a compiler's messages, are skipped.

    A test's name is its package and its own name with those around it (``TestX/case``), each is a test. A
    test that began and did not end is an error; so is a package that failed without a failed test: it does
    not build, or its process ended.

    Raises:
        InvalidReport: there is no event at all, or a limit is broken.
    """
    check_size(content)
    cases: CaseList = []
    running: dict[tuple[str, str], None] = {}
    failed: set[str] = set()
    not_built = itertools.islice(_NOT_BUILT.finditer(content), MAX_CASES + 1)
    packages = {match[1].decode("utf-8", "replace"): None for match in not_built}
    events = 0
    for line in content.splitlines():
        if not line.startswith(b"{") or _OUTPUT in line or len(line) > _MAX_LINE_BYTES:
            events += _OUTPUT in line
            continue
        event = _event(line)
        if event is None:
            continue
        events += 1
        action, package, test = (text_in(event, key) for key in ("Action", "Package", "Test"))
        if action == "run":
            running[package, test] = None
        elif action in _ENDS and test:
            running.pop((package, test), None)
            cases.append((name_of(package, test), _ENDS[action]))
            if action == "fail":
                failed.add(package)
        elif action == "fail":
            packages[package] = None
        check_count(cases)
        if len(running) + len(packages) > MAX_CASES:
            raise InvalidReport(ReportProblem.TOO_MANY_CASES, f"more than {MAX_CASES:,} tests at once")
    if not events:
        raise InvalidReport(ReportProblem.NOT_PARSABLE, "it has no event of go test")
    cases += ((name_of(package, test), CaseStatus.ERROR) for package, test in running)
    broken = failed.union(package for package, _ in running)
    cases += ((name_of(package), CaseStatus.ERROR) for package in packages if package not in broken)
    check_count(cases)
    return make_report(cases)


def _event(line: bytes) -> dict[str, Any] | None:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) and isinstance(data.get("Action"), str) else None
