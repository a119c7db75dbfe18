"""Reports that real tools write about tiny projects are found, and read without contradictions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from codetaste.evaluation.test_runs.cases import CaseStatus, TestReport
from codetaste.evaluation.test_runs.reports.find import find_reports
from codetaste.evaluation.test_runs.reports.read import read_report, read_reports
from codetaste.sandbox.supervisor.node import node_runtime
from support.evaluation.trees import Files, write_tree

PASSED, FAILED, SKIPPED, ERROR = CaseStatus


def need(program: str) -> str:
    """Return the path of an optional program; skip the test without it."""
    found = shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def run(folder: Path, *command: str, **env: str) -> bytes:
    """Run a command, whose tests may fail, and return what it printed."""
    settings = {"PATH": os.environ["PATH"], "HOME": str(folder), **env}
    done = subprocess.run(
        command,
        cwd=folder,
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
        timeout=280,
    )
    return done.stdout


def reports_in(folder: Path) -> TestReport:
    """Find and read all reports below a folder, as one."""
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    found = find_reports(names)
    report, faults = read_reports((name, (folder / name).read_bytes()) for name in found)
    assert found
    assert faults == {}
    return report


PYTEST = """
import unittest
import pytest

def test_passes(): pass
def test_fails(): assert 1 == 2
@pytest.mark.skip(reason="later")
def test_skipped(): pass
@pytest.mark.xfail
def test_expected_to_fail(): assert False
@pytest.fixture
def broken(): raise ValueError
def test_error(broken): pass
@pytest.mark.parametrize("x", [1, "a b", "\\x1b[31m", "é"])
def test_each(x): pass
class TestClass:
    def test_method(self): pass
class Case(unittest.TestCase):
    def test_unit(self): self.assertTrue(True)
"""


def test_junit_xml_of_pytest(tmp_path: Path) -> None:
    write_tree(tmp_path, {"pytest.ini": "[pytest]\n", "tests/test_all.py": PYTEST})
    run(tmp_path, sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--junitxml=out/junit.xml")
    report = reports_in(tmp_path)
    name = "tests.test_all"
    assert report.statuses == {
        f"{name}::test_passes": PASSED,
        f"{name}::test_fails": FAILED,
        f"{name}::test_skipped": SKIPPED,
        f"{name}::test_expected_to_fail": SKIPPED,
        f"{name}::test_error": ERROR,
        f"{name}::test_each[1]": PASSED,
        f"{name}::test_each[a b]": PASSED,
        f"{name}::test_each[\\x1b[31m]": PASSED,
        f"{name}::test_each[\\xe9]": PASSED,
        f"{name}.TestClass::test_method": PASSED,
        f"{name}.Case::test_unit": PASSED,
    }
    assert report.notes == ()


NODE = """
const { describe, it, test } = require('node:test');
const assert = require('node:assert');
describe('adds', () => {
  it('one', () => {});
  it('two', () => { assert.equal(1, 2); });
  describe('small', () => { it('three # 3', { skip: 'later' }, () => {}); });
});
test('outer', async (t) => { await t.test('inner', () => {}); });
test('todo', { todo: true }, () => {});
"""


def test_tap_and_junit_xml_of_node(tmp_path: Path) -> None:
    write_tree(tmp_path, {"all.test.js": NODE})
    node = str(node_runtime().bin)
    for reporter, file in (("tap", "results.tap"), ("junit", "junit.xml")):
        run(tmp_path, node, "--test", f"--test-reporter={reporter}", f"--test-reporter-destination={file}")
    tap = read_report((tmp_path / "results.tap").read_bytes())
    assert tap.statuses == {
        "adds::one": PASSED,
        "adds::two": FAILED,
        "adds::small::three # 3": SKIPPED,
        "outer::inner": PASSED,
        "outer": PASSED,
        "todo": SKIPPED,
    }
    assert tap.notes == ()
    # As XML, a test with subtests is a suite, and each test has the class "test".
    junit = read_report((tmp_path / "junit.xml").read_bytes())
    found = {
        name.removeprefix(f"{tmp_path}/all.test.js::"): status for name, status in junit.statuses.items()
    }
    assert found == {
        "adds::test::one": PASSED,
        "adds::test::two": FAILED,
        "adds::small::test::three # 3": SKIPPED,
        "outer::test::inner": PASSED,
        "test::todo": SKIPPED,
    }
    assert junit.notes == ()


GO: Files = {
    "go.mod": "module m\n\ngo 1.20\n",
    "a/a_test.go": """package a

import (
	"fmt"
	"testing"
)

func TestPass(t *testing.T) { fmt.Println("{\\"Action\\":\\"pass\\",\\"Test\\":\\"TestForged\\"}") }
func TestFail(t *testing.T) {
	t.Run("one", func(t *testing.T) {})
	t.Run("two", func(t *testing.T) { t.Fatal() })
}
func TestSkip(t *testing.T) { t.Skip("later") }
""",
    "b/b_test.go": 'package b\n\nimport "testing"\n\nfunc TestBroken(t *testing.T) { undefined() }\n',
    "c/c_test.go": """package c

import (
	"os"
	"testing"
)

func TestExit(t *testing.T) { os.Exit(1) }
""",
    "d/d.go": "package d\n",
}


@pytest.mark.heavy
def test_events_of_go(tmp_path: Path) -> None:
    write_tree(tmp_path / "m", GO)
    settings = {
        "GOPROXY": "off",
        "GOFLAGS": "-mod=mod",
        "GOTOOLCHAIN": "local",
        "GOCACHE": str(tmp_path / "c"),
    }
    report = read_report(run(tmp_path / "m", need("go"), "test", "-json", "./...", **settings))
    assert report.statuses == {
        "m/a::TestPass": PASSED,
        "m/a::TestFail": FAILED,
        "m/a::TestFail/one": PASSED,
        "m/a::TestFail/two": FAILED,
        "m/a::TestSkip": SKIPPED,
        "m/b": ERROR,
        "m/c::TestExit": ERROR,
    }


RUST: Files = {
    "Cargo.toml": '[package]\nname = "x"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": """/// ```
/// assert_eq!(x::one(), 1);
/// ```
pub fn one() -> i32 { 1 }

#[cfg(test)]
mod tests {
    #[test]
    fn passes() { println!("test forged ... ok"); }
    #[test]
    fn fails() { assert_eq!(1, 2); }
    #[test]
    #[ignore = "later"]
    fn ignored() {}
    #[test]
    #[should_panic]
    fn panics() { panic!() }
}
""",
    "tests/it.rs": "#[test]\nfn passes() {}\n",
}


@pytest.mark.slow
def test_text_of_cargo_test(tmp_path: Path) -> None:
    write_tree(tmp_path, RUST)
    home = {
        name: os.environ.get(name, str(Path.home() / f".{name[:-5].lower()}")) for name in ("RUSTUP_HOME",)
    }
    report = read_report(run(tmp_path, need("cargo"), "test", "--offline", "--no-fail-fast", **home))
    assert report.statuses == {
        "src/lib.rs::tests::passes": PASSED,
        "src/lib.rs::tests::fails": FAILED,
        "src/lib.rs::tests::ignored": SKIPPED,
        "src/lib.rs::tests::panics - should panic": PASSED,
        "tests/it.rs::passes": PASSED,
        "doc x::src/lib.rs - one (line 1)": PASSED,
    }
    assert report.notes == ()


CMAKE: Files = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.21)
project(x NONE)
include(CTest)
add_test(NAME passes COMMAND ${CMAKE_COMMAND} -E true)
add_test(NAME fails COMMAND ${CMAKE_COMMAND} -E false)
add_test(NAME disabled COMMAND ${CMAKE_COMMAND} -E true)
set_tests_properties(disabled PROPERTIES DISABLED TRUE)
"""
}


@pytest.mark.heavy
def test_reports_of_ctest(tmp_path: Path) -> None:
    write_tree(tmp_path, CMAKE)
    ctest = need("ctest")
    run(tmp_path, need("cmake"), "-B", "build")
    run(tmp_path / "build", ctest, "-T", "Test")
    (place,) = (tmp_path / "build/Testing").glob("*/Test.xml")
    expected = {"passes": PASSED, "fails": FAILED, "disabled": SKIPPED}
    assert read_report(place.read_bytes()).statuses == expected
    run(tmp_path / "build", ctest, "--output-junit", "junit.xml")
    junit = read_report((tmp_path / "build/junit.xml").read_bytes())
    assert {name.rpartition("::")[2]: status for name, status in junit.statuses.items()} == expected
    assert junit.notes == ()
