"""Reports are found by their places and names, and read from a tar stream."""

from __future__ import annotations

import io
import tarfile

import pytest

from codetaste.core.tar import TarReader
from codetaste.evaluation.metrics import TestCounts
from codetaste.evaluation.test_runs.cases import CaseStatus
from codetaste.evaluation.test_runs.reports import find
from codetaste.evaluation.test_runs.reports.compare import compare_with_counts
from codetaste.evaluation.test_runs.reports.find import ReportCollector, find_reports, is_report_place
from codetaste.evaluation.test_runs.reports.limits import ReportProblem
from codetaste.evaluation.test_runs.reports.read import read_report

REPORT = b"<testsuite name='s'><testcase name='%s'/></testsuite>"


@pytest.mark.parametrize(
    "path",
    [
        "junit.xml",
        "/testbed/junit.xml",
        "/tmp/pytest-junit.xml",
        "target/surefire-reports/TEST-acme.ATest.xml",
        "core/target/failsafe-reports/TEST-acme.AIT.xml",
        "build/test-results/test/TEST-acme.ATest.xml",
        "app/build/test-results/testDebugUnitTest/TEST-acme.ATest.xml",
        "target/nextest/ci/junit.xml",
        "build/Testing/20260101-0000/Test.xml",
        "test-results/mocha/results.xml",
        "reports/unit.xml",
        "test-results.json",
        "jest-results.json",
        "/tmp/jest_output.json",
        "vitest-report.json",
        "/tmp/test_output.json",
        "go-test.jsonl",
        "results.tap",
    ],
)
def test_known_places_of_reports(path: str) -> None:
    assert is_report_place(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/junit/Runner.java",
        "pom.xml",
        "node_modules/jest-junit/junit.xml",
        "vendor/x/test-results.json",
        "jest.config.json",
        "vitest.config.json",
        "package.json",
        "tests/data/items.xml",
        "pytest.ini",
        "target/surefire-reports/acme.ATest.txt",
        "a/" * 3000 + "junit.xml",
    ],
)
def test_other_files_are_no_reports(path: str) -> None:
    assert not is_report_place(path)


def test_files_that_were_there_before_the_run_are_no_reports() -> None:
    names = ["b/junit.xml", "a/junit.xml", "old/junit.xml", "main.py"]
    assert find_reports(names, before={"old/junit.xml"}) == ("a/junit.xml", "b/junit.xml")


def tar(*members: tuple[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        link = tarfile.TarInfo("link/junit.xml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return stream.getvalue()


def collect(stream: bytes, before: tuple[str, ...] = ()) -> ReportCollector:
    collector = ReportCollector(before)
    reader = TarReader(collector)
    for at in range(0, len(stream), 700):
        reader.feed(stream[at : at + 700])
    return collector


def test_reports_of_a_tar_stream_are_read_and_merged() -> None:
    stream = tar(
        ("testbed/target/surefire-reports/TEST-a.xml", REPORT % b"one"),
        ("testbed/target/surefire-reports/TEST-b.xml", REPORT % b"two"),
        ("testbed/src/main.py", b"print()\n"),
        ("testbed/old/junit.xml", REPORT % b"old"),
        ("testbed/junit.xml", b"<testsuite>"),
    )
    collector = collect(stream, before=("testbed/old/junit.xml",))
    assert collector.report is not None
    assert collector.report.statuses == {"s::one": CaseStatus.PASSED, "s::two": CaseStatus.PASSED}
    assert {path: fault.problem for path, fault in collector.faults.items()} == {
        "testbed/junit.xml": ReportProblem.NOT_PARSABLE
    }


def test_report_that_is_too_large_is_named_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find, "MAX_REPORT_BYTES", 100)
    collector = collect(tar(("junit.xml", b" " * 2000 + REPORT % b"a"), ("b/junit.xml", REPORT % b"b")))
    assert collector.report is not None
    assert list(collector.report.statuses) == ["s::b"]
    assert collector.faults["junit.xml"].problem is ReportProblem.TOO_LARGE


def test_archive_without_reports_has_none() -> None:
    assert collect(tar(("main.py", b"x"))).report is None


TESTS = b"""<testsuite name='s'><testcase name='a'/><testcase name='b'/>
<testcase name='c'><failure/></testcase><testcase name='d'><skipped/></testcase>
<testcase name='e'><error/></testcase></testsuite>"""


@pytest.mark.parametrize(
    ("counts", "keys"),
    [
        (TestCounts(2, 1, 1, 5), []),
        (TestCounts(2, 2, 1, 5), []),  # errors are failed tests
        (TestCounts(2, 1, 1, 4), []),  # total without skipped tests or without errors
        (TestCounts(2, 1, 1, 3), []),
        (TestCounts(3, 1, 1, 5), ["passed"]),
        (TestCounts(2, 0, 1, 5), ["failed"]),
        (TestCounts(500, 0, 0, 500), ["passed", "failed", "skipped", "total"]),
    ],
)
def test_counts_that_contradict_the_report(counts: TestCounts, keys: list[str]) -> None:
    found = compare_with_counts(read_report(TESTS), counts)
    assert list(found) == keys
    if "total" in keys:
        assert found["total"] == "run_tests printed total 500, the report has 3 to 5"
