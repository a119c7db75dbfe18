"""Errors of javac are found in the output of javac, Maven and Gradle, and have a kind."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.report.failures.compiler_errors import (
    CompilerError,
    CompilerErrorKind,
    kind_of_message,
    read_compiler_errors,
)
from support.swe_refactor.faulty_classes import FAULTY_CLASSES
from support.swe_refactor.jdks import JDKS

if TYPE_CHECKING:
    from pathlib import Path

JAVAC = """\
src/p/A.java:3: warning: [removal] stop() in Thread has been deprecated and marked for removal
    t.stop();
src/p/A.java:1: error: cannot find symbol
class A { int f() { return g(1, "x"); } }
                           ^
  symbol:   method g(int,String)
  location: class A
1 error
"""
GRADLE = """\
> Task :compileJava FAILED
/w/src/main/java/p/B c.java:12: error: incompatible types: String cannot be converted to int
        int a = "x";
                ^
1 error
"""
MAVEN = """\
[INFO] -------------------------------------------------------------
[ERROR] COMPILATION ERROR :
[INFO] -------------------------------------------------------------
[ERROR] /w/src/main/java/p/A.java:[7,9] cannot find symbol
  symbol:   variable b
  location: class p.A
[ERROR] /w/src/main/java/p/A.java:[9,1] class, interface, or enum expected
[INFO] 2 errors
[ERROR] Failed to execute goal org.apache.maven.plugins:maven-compiler-plugin:3.13.0:compile:
[ERROR] /w/src/main/java/p/A.java:[7,9] cannot find symbol
[ERROR]   symbol:   variable b
[ERROR] -> [Help 1]
"""


@pytest.mark.parametrize(
    ("output", "errors"),
    [
        (JAVAC, [CompilerError("src/p/A.java", 1, "cannot find symbol")]),
        (
            GRADLE,
            [
                CompilerError(
                    "/w/src/main/java/p/B c.java",
                    12,
                    "incompatible types: String cannot be converted to int",
                )
            ],
        ),
        (
            MAVEN,
            [
                CompilerError("/w/src/main/java/p/A.java", 7, "cannot find symbol"),
                CompilerError("/w/src/main/java/p/A.java", 9, "class, interface, or enum expected"),
            ],
        ),
        ("", []),
    ],
    ids=["javac", "gradle", "maven", "nothing"],
)
def test_each_error_is_read_once_and_no_warning(output: str, errors: list[CompilerError]) -> None:
    assert read_compiler_errors(output) == errors
    assert read_compiler_errors(output.replace("\n", "\r\n")) == errors


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        # What JDKs say differently: 8 and 11; 17 and 21; 25; a bare method by 17, 21 and 25.
        ("class, interface, or enum expected", CompilerErrorKind.SYNTAX),
        ("class, interface, enum, or record expected", CompilerErrorKind.SYNTAX),
        (
            "class, interface, annotation type, enum, record, method or field expected",
            CompilerErrorKind.SYNTAX,
        ),
        ("unnamed classes are a preview feature and are disabled by default.", CompilerErrorKind.SYNTAX),
        (
            "compact source file does not have main method in the form of void main() or void main(...)",
            CompilerErrorKind.SYNTAX,
        ),
        ("')' expected", CompilerErrorKind.SYNTAX),
        ("')' or ',' expected", CompilerErrorKind.SYNTAX),
        ("text blocks are not supported in -source 8", CompilerErrorKind.SYNTAX),
        ("missing return statement", CompilerErrorKind.OTHER),
        ("incompatible types: unexpected return value", CompilerErrorKind.TYPES),
        ("method f in class A cannot be applied to given types;", CompilerErrorKind.TYPES),
        ("no suitable constructor found for A(int)", CompilerErrorKind.TYPES),
        ("cannot access B", CompilerErrorKind.MISSING_SYMBOL),
        ("package foo.bar does not exist", CompilerErrorKind.MISSING_SYMBOL),
        ("a message of a later JDK", CompilerErrorKind.OTHER),
    ],
)
def test_messages_that_differ_by_jdk(message: str, kind: CompilerErrorKind) -> None:
    assert kind_of_message(message) is kind


@given(st.text(max_size=300))
def test_no_output_raises(output: str) -> None:
    assert all(error.line >= 0 for error in read_compiler_errors(output))


DRIVER = """\
import java.io.*;
import javax.tools.*;

public class Compile {
    public static void main(String[] args) throws Exception {
        JavaCompiler compiler = ToolProvider.getSystemJavaCompiler();
        for (String folder : args) {
            try (OutputStream output = new FileOutputStream(folder + "/output")) {
                compiler.run(null, output, output, "-encoding", "UTF-8", "-proc:none", "-d", folder,
                    folder + "/A.java");
            }
        }
    }
}
"""


@pytest.mark.heavy
@pytest.mark.parametrize("jdk", JDKS or [None], ids=str)
def test_real_messages_have_the_kind_of_their_fault(jdk: Path | None, tmp_path: Path) -> None:
    if jdk is None:
        pytest.skip("no JDK in the usual folders")
    driver = tmp_path / "Compile.java"
    driver.write_text(DRIVER)
    subprocess.run(  # in two steps, because JDK 8 cannot run a source file
        [jdk / "bin/javac", "-d", tmp_path, driver], check=True, capture_output=True
    )
    folders = {}
    for kind, classes in FAULTY_CLASSES.items():
        for number, text in enumerate(classes):
            folder = tmp_path / f"{kind.name}_{number}"
            folder.mkdir()
            (folder / "A.java").write_text(text, "utf-8")
            folders[folder] = (kind, text)
    subprocess.run(
        [jdk / "bin/java", "-Duser.language=en", "-cp", tmp_path, "Compile", *folders],
        check=True,
        capture_output=True,
    )
    for folder, (kind, text) in folders.items():
        output = (folder / "output").read_text("utf-8")
        kinds = {error.kind for error in read_compiler_errors(output)}
        assert min(kinds, key=list(CompilerErrorKind).index) is kind, (text, output)
