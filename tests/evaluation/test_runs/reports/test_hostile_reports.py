"""Hostile reports: each is refused with a named problem, or read within the limits."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.evaluation.test_runs.cases import MAX_NAME_CHARS, CaseStatus
from codetaste.evaluation.test_runs.reports import limits
from codetaste.evaluation.test_runs.reports.limits import InvalidReport, ReportProblem
from codetaste.evaluation.test_runs.reports.read import read_report, read_reports

BOMB = """<?xml version="1.0"?>
<!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;">]>
<testsuite><testcase name="&c;"/></testsuite>"""
EXTERNAL = """<!DOCTYPE testsuite [<!ENTITY x SYSTEM "file:///etc/passwd">]>
<testsuite><testcase name="t">&x;</testcase></testsuite>"""
PARAMETER = """<!DOCTYPE testsuite SYSTEM "http://127.0.0.1:9/evil.dtd"><testsuite/>"""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (BOMB.encode(), ReportProblem.HAS_DTD),
        (EXTERNAL.encode(), ReportProblem.HAS_DTD),
        (PARAMETER.encode(), ReportProblem.HAS_DTD),
        (BOMB.replace('<?xml version="1.0"?>\n', "").encode("utf-16"), ReportProblem.HAS_DTD),
        (b"<testsuite><testcase name='&undefined;'/></testsuite>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite><testcase name='a'>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite/><testsuite/>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite><testcase name='a' name='b'/></testsuite>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite>\xff\xfe</testsuite>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite>\0</testsuite>", ReportProblem.NOT_PARSABLE),
        (b"<testsuite>" * 200, ReportProblem.TOO_DEEP),
        (b"<testsuites>" + b"<a>" * 200, ReportProblem.TOO_DEEP),
        (b"<html><body/></html>", ReportProblem.UNKNOWN_FORMAT),
        (b"", ReportProblem.UNKNOWN_FORMAT),
        (b"\x1f\x8b\x08\0\0", ReportProblem.UNKNOWN_FORMAT),
        (b"5 passed in 0.1s", ReportProblem.UNKNOWN_FORMAT),
        (b"{}", ReportProblem.UNKNOWN_FORMAT),
        (b'{"testResults": 5}', ReportProblem.NOT_PARSABLE),
        (b'{"stats": [], "passes": []}', ReportProblem.NOT_PARSABLE),
        (b'{"testResults": [', ReportProblem.NOT_PARSABLE),
        (b'{"testResults": ' + b"[" * 100_000, ReportProblem.TOO_DEEP),
        (b'{"testResults": [' + b"[]," * 4_000_000, ReportProblem.TOO_LARGE),
        (b"TAP version 13\n" + b" " * 4000 + b"ok 1 - a\n", ReportProblem.TOO_DEEP),
        (b"TAP version 13\n" + b" " * 4000 + b"# Subtest: a\n", ReportProblem.TOO_DEEP),
        (b"TAP version 13\nnothing\n", ReportProblem.NOT_PARSABLE),
        (b"running 5 tests\n", ReportProblem.NOT_PARSABLE),
    ],
    ids=lambda value: value[:30] if isinstance(value, bytes) else value,
)
def test_broken_reports_have_a_named_problem(content: bytes, problem: ReportProblem) -> None:
    with pytest.raises(InvalidReport) as caught:
        read_report(content)
    assert caught.value.problem is problem
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 300


@pytest.mark.parametrize(
    "encoding", ["utf-7", "idna", "rot13", "hex", "punycode", "cp037", "utf-32", "x", "mbcs"]
)
def test_encodings_that_no_xml_has_are_a_problem_or_are_read(encoding: str) -> None:
    text = f'<?xml version="1.0" encoding="{encoding}"?><testsuite><testcase name="t"/></testsuite>'
    report, faults = read_reports([("a.xml", text.encode())])
    assert len(report.cases) + len(faults) == 1
    assert {fault.problem for fault in faults.values()} <= {ReportProblem.NOT_PARSABLE}


@pytest.mark.parametrize(
    "content",
    [
        b"<testsuite>" + b"<testcase name='t'/>" * 30 + b"</testsuite>",
        b"1..30\n" + b"ok 1 - t\n" * 30,
        b"running 30 tests\n" + b"test t ... ok\n" * 30,
        b'{"Action":"pass","Package":"p","Test":"t"}\n' * 30,
        json.dumps({"testResults": [{"assertionResults": [{"title": "t"}] * 30}]}).encode(),
        json.dumps({"stats": {}, "passes": [{"title": "t"}] * 30}).encode(),
        b"<Site>" + b"<Test Status='passed'><FullName>t</FullName></Test>" * 30 + b"</Site>",
        b'{"Action":"run","Package":"p","Test":"%d"}\n' * 30 % tuple(range(30)),
    ],
)
def test_reports_with_too_many_tests_or_bytes_are_refused(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(read_report(content).cases) == 30
    monkeypatch.setattr(limits, "MAX_REPORT_BYTES", len(content) - 1)
    with pytest.raises(InvalidReport, match="no more than") as caught:
        read_report(content)
    assert caught.value.problem is ReportProblem.TOO_LARGE
    monkeypatch.undo()
    monkeypatch.setattr(limits, "MAX_CASES", 29)
    with pytest.raises(InvalidReport, match="more than 29 tests") as caught:
        read_report(content)
    assert caught.value.problem is ReportProblem.TOO_MANY_CASES


def test_names_are_bounded_and_printable() -> None:
    long = f"<testsuite><testcase name='{'x' * 100_000}'/><testcase name='a&#9;\u202e\u200b'/></testsuite>"
    first, second = (case.name for case in read_report(long.encode()).cases)
    assert len(first) == MAX_NAME_CHARS
    assert second == r"a \u202e\u200b"


def test_unreadable_files_do_not_hide_the_others() -> None:
    good = b"<testsuite><testcase name='t'/></testsuite>"
    report, faults = read_reports([("a.xml", good), ("b.xml", BOMB.encode()), ("c.tap", b"1..1\nok 1 - u\n")])
    assert list(report.statuses) == ["t", "u"]
    assert {path: fault.problem for path, fault in faults.items()} == {"b.xml": ReportProblem.HAS_DTD}


_GOOD = [
    b"<testsuite name='s'><testcase classname='c' name='t'><failure/></testcase></testsuite>",
    b"<Site><Testing><Test Status='failed'><FullName>t</FullName></Test></Testing></Site>",
    b'{"Action":"run","Package":"p","Test":"t"}\n{"Action":"fail","Package":"p","Test":"t"}\n',
    b'{"numTotalTests":1,"testResults":[{"name":"f","assertionResults":[{"title":"t","status":"failed"}]}]}',
    b'{"stats":{"passes":1},"passes":[{"fullTitle":"t"}],"failures":[{}],"pending":[]}',
    b"TAP version 13\n# Subtest: a\n    not ok 1 - t # TODO\n      ---\n      type: suite\n      ...\n1..1\n",
    b"running 1 test\ntest t ... FAILED\ntest result: ok. 0 passed; 1 failed; 0 ignored; 0 measured\n",
]


@given(st.sampled_from(_GOOD), st.data())
def test_damaged_reports_raise_nothing_else(content: bytes, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(content)))
    to = data.draw(st.integers(at, len(content)))
    piece = data.draw(
        st.one_of(st.binary(max_size=6), st.sampled_from([b'"', b"<", b"&#0;", b"null", b"{", b"\n"]))
    )
    damaged = content[:at] + piece * data.draw(st.integers(0, 3)) + content[to:]
    report, faults = read_reports([("x", damaged)])
    assert all(str(fault).isprintable() for fault in faults.values())
    assert all(case.name.isprintable() and isinstance(case.status, CaseStatus) for case in report.cases)
    assert len(report.statuses) == len(report.cases)


@given(st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-1, 3), st.sampled_from(["", "passed", "t"])),
    lambda inner: st.one_of(
        st.lists(inner, max_size=2),
        st.dictionaries(
            st.sampled_from(["testResults", "assertionResults", "stats", "passes", "name", "status"]),
            inner, max_size=3,
        ),
    ),
    max_leaves=8,
))  # fmt: skip
def test_json_of_any_shape_raises_nothing_else(data: object) -> None:
    whole = {"testResults": data, "stats": data, "passes": data}
    _, faults = read_reports((str(each), json.dumps(each).encode()) for each in (data, whole))
    assert all(str(fault).isprintable() for fault in faults.values())


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (b"<testsuite>%s</testsuite>", b"<testcase name='abcdefgh'/>"),
        (b"1..1\n%s", b"ok 1 - a # b # c # d\n"),
        (b"1..1\nok 1%s\n", b" #"),
        (b"running 1 test\ntest a%s\n", b" ... "),
        (b"<testsuite a='%s'/>", b"x" * 20),
        (b"<!--%s--><testsuite/>", b"- " * 10),
        (b"%s<testsuite/>", b"<!-- -->"),
        (b'{"Action":"run"%s', b',"a":"b"'),
    ],
)
def test_time_grows_with_the_size_of_the_report_only(small: bytes, large: bytes) -> None:
    def measure(times: int) -> float:
        content = small % (large * times)
        best = float("inf")
        for _ in range(2):
            start = time.process_time()
            read_reports([("x", content)])
            best = min(best, time.process_time() - start)
        return best

    assert measure(8000) < 60 * measure(500) + 0.5
