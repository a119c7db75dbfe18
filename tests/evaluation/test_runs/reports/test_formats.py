"""Each format is recognised by its content, and its tests are read with names and statuses."""

from __future__ import annotations

import json

import pytest

from codetaste.evaluation.test_runs.cases import CaseCounts, CaseStatus
from codetaste.evaluation.test_runs.reports.read import read_report

PASSED, FAILED, SKIPPED, ERROR = CaseStatus


def statuses(text: str) -> dict[str, CaseStatus]:
    return read_report(text.encode()).statuses


def junit(*cases: str, suite: str = 'name="s"') -> str:
    return f"<testsuites><testsuite {suite}>{''.join(cases)}</testsuite></testsuites>"


def test_junit_outcomes_are_children_of_a_test() -> None:
    text = junit(
        '<testcase classname="a.B" name="one"/>',
        '<testcase classname="a.B" name="two"><failure message="x">trace</failure></testcase>',
        '<testcase classname="a.B" name="three"><skipped/></testcase>',
        '<testcase classname="a.B" name="four"><error/></testcase>',
        '<testcase classname="a.B" name="five"><skipped/><failure/></testcase>',
        '<testcase classname="a.B" name="six"><flakyFailure>first try</flakyFailure></testcase>',
        '<testcase classname="a.B" name="seven"><failure/><rerunFailure/></testcase>',
        suite='name="a.B" tests="7"',
    )
    assert statuses(text) == {
        "a.B::one": PASSED,
        "a.B::two": FAILED,
        "a.B::three": SKIPPED,
        "a.B::four": ERROR,
        "a.B::five": FAILED,
        "a.B::six": PASSED,
        "a.B::seven": FAILED,
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (junit('<testcase classname="tests.test_x.TestA" name="test_b[1-2]"/>', suite='name="pytest"'),
         "tests.test_x.TestA::test_b[1-2]"),
        (junit('<testcase file="tests/test_x.py" classname="tests.test_x" name="t"/>', suite='name="pytest"'),
         "tests/test_x.py::tests.test_x::t"),
        (junit('<testcase classname="acme.ATest" name="runs(int)[1]"/>', suite='name="acme.ATest"'),
         "acme.ATest::runs(int)[1]"),
        (junit('<testcase classname="my-crate::it" name="tests::adds"/>', suite='name="my-crate::it"'),
         "my-crate::it::tests::adds"),
        (junit('<testcase name="adds" classname="adds" status="run"/>', suite='name="Linux-c++"'),
         "Linux-c++::adds"),
        (junit('<testsuite name="in"><testcase name="t" classname="test"/></testsuite>', suite='name="out"'),
         "out::in::test::t"),
        (junit('<testcase name="  t\x26#10;u "/>', suite=""), "t u"),
        (junit('<testcase classname="a.B" name=""><error/></testcase>', suite='name="a.B"'), "a.B"),
        ('<testsuite name="a.B"><testcase classname="a.B" name="t"/></testsuite>', "a.B::t"),
        ('\ufeff<?xml version="1.0"?>\n<!-- made -->\n<testsuite><testcase name="t"/></testsuite>', "t"),
    ],
)  # fmt: skip
def test_junit_names_are_file_suites_class_and_test(text: str, name: str) -> None:
    assert list(statuses(text)) == [name]


def test_junit_of_other_encodings_is_read() -> None:
    text = '<?xml version="1.0" encoding="{}"?><testsuite><testcase name="prüft"/></testsuite>'
    for encoding in ("utf-8", "iso-8859-1", "utf-16"):
        report = read_report(text.format(encoding).encode(encoding))
        assert list(report.statuses) == ["prüft"]


def test_statuses_of_ctest_are_read() -> None:
    text = junit(
        '<testcase name="a" status="run"/>',
        '<testcase name="b" status="fail"><failure/></testcase>',
        '<testcase name="c" status="notrun"/>',
        '<testcase name="d" status="disabled"/>',
    )
    assert list(statuses(text).values()) == [PASSED, FAILED, SKIPPED, SKIPPED]


def test_test_xml_of_ctest_is_read() -> None:
    text = """<?xml version="1.0" encoding="UTF-8"?>
<Site BuildName="b"><Testing><TestList><Test>./a</Test><Test>./b</Test></TestList>
<Test Status="passed"><Name>a</Name><FullName>./a</FullName><Results><Measurement/></Results></Test>
<Test Status="failed"><Name>b</Name><FullName>./sub/b</FullName></Test>
<Test Status="notrun"><Name>c</Name><FullName>./c</FullName></Test></Testing></Site>"""
    assert statuses(text) == {"a": PASSED, "sub/b": FAILED, "c": SKIPPED}


def test_error_of_a_suite_is_noted() -> None:
    report = read_report(junit('<error message="x"/>', '<testcase name="t"/>').encode())
    assert report.notes == ("the suite 's' has an error outside of its tests",)


def go_events(*events: dict[str, str]) -> str:
    return "".join(f"{json.dumps({'Time': 't', **event}, separators=(',', ':'))}\n" for event in events)


def test_go_events_are_read() -> None:
    text = "# m/broken\n./x.go:3:1: syntax error\n" + go_events(
        {"Action": "start", "Package": "m/a"},
        {"Action": "run", "Package": "m/a", "Test": "TestA"},
        {"Action": "output", "Package": "m/a", "Test": "TestA", "Output": '{"Action":"pass","Test":"X"}\n'},
        {"Action": "run", "Package": "m/a", "Test": "TestA/one"},
        {"Action": "pass", "Package": "m/a", "Test": "TestA/one"},
        {"Action": "fail", "Package": "m/a", "Test": "TestA"},
        {"Action": "skip", "Package": "m/a", "Test": "TestB"},
        {"Action": "fail", "Package": "m/a"},
        {"Action": "skip", "Package": "m/empty"},
        {"Action": "fail", "Package": "m/broken"},
        {"Action": "run", "Package": "m/exits", "Test": "TestC"},
        {"Action": "fail", "Package": "m/exits"},
        {"Action": "pass", "Package": "m/good", "Test": "TestD"},
        {"Action": "pass", "Package": "m/good"},
    )  # fmt: skip
    assert statuses(text) == {
        "m/a::TestA/one": PASSED,
        "m/a::TestA": FAILED,
        "m/a::TestB": SKIPPED,
        "m/good::TestD": PASSED,
        "m/exits::TestC": ERROR,
        "m/broken": ERROR,
    }


def test_jest_and_vitest_reports_are_read() -> None:
    data = {
        "numTotalTests": 3,
        "testResults": [
            {
                "name": "/testbed/src/a.test.js",
                "status": "failed",
                "assertionResults": [
                    {"ancestorTitles": ["adds", "small"], "title": "one", "status": "passed"},
                    {"ancestorTitles": ["adds"], "title": "two", "status": "failed"},
                    {"ancestorTitles": [], "title": "three", "status": "todo"},
                ],
            },
            {
                "name": "/testbed/src/b.test.js",
                "status": "failed",
                "assertionResults": [],
                "message": "no module",
            },
        ],
    }
    expected = {
        "src/a.test.js::adds::small::one": PASSED,
        "src/a.test.js::adds::two": FAILED,
        "src/a.test.js::three": SKIPPED,
        "src/b.test.js": ERROR,
    }
    report = read_report(json.dumps(data).encode())
    assert (report.statuses, report.notes) == (expected, ())
    noisy = f"> jest --json\nwarning: x\n{json.dumps(data, indent=2)}\nDone in 1s.\n"
    assert statuses(noisy) == expected
    fewer = read_report(json.dumps({**data, "numTotalTests": 300}).encode())
    assert fewer.notes == ("it declares 300 tests and has 3",)


def test_mocha_reports_are_read() -> None:
    data = {
        "stats": {"tests": 3, "passes": 1, "pending": 1, "failures": 2},
        "tests": [{"title": "x"}],
        "passes": [{"title": "one", "fullTitle": "adds one", "file": "/testbed/test/a.js"}],
        "pending": [{"title": "two", "fullTitle": "adds two"}],
        "failures": [
            {"title": "three", "fullTitle": "adds three"},
            {"title": '"before all" hook', "fullTitle": 'adds "before all" hook'},
        ],
    }
    assert statuses(f"(node) warning\n{json.dumps(data)}") == {
        "test/a.js::adds one": PASSED,
        "adds three": FAILED,
        'adds "before all" hook': FAILED,
        "adds two": SKIPPED,
    }


TAP = """TAP version 13
# Subtest: adds
    # Subtest: one
    ok 1 - one
      ---
      duration_ms: 0.3
      ...
    # Subtest: two
    not ok 2 - two
      ---
      error: 'not ok 9 - no point'
      stack: |-
        ok 10 - no point either
      ...
    # Subtest: small
        ok 1 - three # SKIP no time
        1..1
    ok 3 - small
      ---
      type: 'suite'
      ...
    1..3
not ok 1 - adds
  ---
  type: 'suite'
  ...
ok 2 - issue \\#12 is closed
ok 3 - later # TODO
not ok 4 - later too # TODO
ok 5
1..5
# tests 5
"""


def test_tap_with_subtests_is_read() -> None:
    report = read_report(TAP.encode())
    assert report.notes == ()
    assert report.statuses == {
        "adds::one": PASSED,
        "adds::two": FAILED,
        "adds::small::three": SKIPPED,
        "issue #12 is closed": PASSED,
        "later": SKIPPED,
        "later too": SKIPPED,
        "5": PASSED,
    }


def test_tap_that_ends_early_is_noted() -> None:
    report = read_report(b"1..4\nok 1 - a\nok 2 - b\nBail out! database\n")
    assert report.notes == ("Bail out! database", "the plan says 4 tests, there are 2")


LIBTEST = """   Compiling x v0.1.0 (/testbed)
     Running unittests src/lib.rs (target/debug/deps/x-1a2b)

running 3 tests
test tests::adds ... ok
test tests::slow ... ignored, takes long
test tests::fails - should panic ... FAILED

test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

     Running tests/it.rs (target/debug/deps/it-3c4d)

running 1 test
test tests::adds ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

   Doc-tests x

running 1 test
test src/lib.rs - add (line 3) ... ok

test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
"""


def test_text_of_cargo_test_is_read() -> None:
    report = read_report(LIBTEST.encode())
    assert report.notes == ()
    assert report.statuses == {
        "src/lib.rs::tests::adds": PASSED,
        "src/lib.rs::tests::slow": SKIPPED,
        "src/lib.rs::tests::fails - should panic": FAILED,
        "tests/it.rs::tests::adds": PASSED,
        "doc x::src/lib.rs - add (line 3)": PASSED,
    }


def test_line_of_a_test_that_its_output_hides_is_noted() -> None:
    text = LIBTEST.replace("test tests::adds ... ok", "test tests::adds ... hello\nok", 1)
    assert read_report(text.encode()).notes == ("its summaries say 5 tests, there are 4",)


def test_tests_with_one_name_stay_several() -> None:
    text = junit('<testcase name="t"><failure/></testcase>', '<testcase name="t"/>', '<testcase name="t#2"/>')
    report = read_report(text.encode())
    assert report.statuses == {"s::t": PASSED, "s::t#2": PASSED, "s::t#2'": FAILED}
    assert report.counts == CaseCounts(2, 1, 0, 0)
    assert report.counts.total == 3
