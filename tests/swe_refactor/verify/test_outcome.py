"""What the output of a failed build says is a named outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codetaste.swe_refactor.verify.outcome import VerificationOutcome as Outcome
from codetaste.swe_refactor.verify.outcome import (
    first_error,
    outcome_of_ended_tests,
    outcome_of_failed_build,
)


@pytest.mark.parametrize(
    ("output", "outcome"),
    [
        ("[ERROR] COMPILATION ERROR : \n[ERROR] A.java:[1,2] ';' expected", Outcome.COMPILE_FAILS_BEFORE),
        ("error: release version 21 not supported", Outcome.COMPILE_FAILS_BEFORE),
        ("error: Source option 5 is no longer supported. Use 7 or later.", Outcome.COMPILE_FAILS_BEFORE),
        ("[ERROR] Could not resolve dependencies for project a:b:jar:1", Outcome.NEEDS_DOWNLOAD),
        ("Cannot access codetaste in offline mode and the artifact", Outcome.NEEDS_DOWNLOAD),
        ("> Could not resolve all files for configuration ':compileClasspath'.", Outcome.NEEDS_DOWNLOAD),
        ("java.net.UnknownHostException: example.org", Outcome.NEEDS_DOWNLOAD),
        ("java.awt.HeadlessException: No X11 DISPLAY variable was set", Outcome.WANTS_GUI),
        ("java.lang.OutOfMemoryError: Java heap space", Outcome.OUT_OF_MEMORY),
        ("The forked VM terminated without saying properly goodbye", Outcome.JVM_DIES),
        ("Process 'Gradle Test Executor 1' finished with non-zero exit value 137", Outcome.JVM_DIES),
        ("The forked VM terminated\njava.lang.OutOfMemoryError", Outcome.OUT_OF_MEMORY),
        ("Could not install Gradle distribution from", Outcome.WRAPPER_WITHOUT_DISTRIBUTION),
        ("[ERROR] something else", Outcome.BUILD_FAILS),
    ],
)  # fmt: skip
def test_output_of_a_failed_build(output: str, outcome: Outcome) -> None:
    assert outcome_of_failed_build(output) is outcome


def test_tests_of_a_build_that_went_on_count_unless_their_jvm_died_or_none_passed() -> None:
    assert outcome_of_ended_tests("java.awt.HeadlessException", nothing_passed=False) is None
    assert outcome_of_ended_tests("java.awt.HeadlessException", nothing_passed=True) is Outcome.WANTS_GUI
    assert outcome_of_ended_tests("expected 1", nothing_passed=True) is Outcome.TESTS_FAIL
    assert outcome_of_ended_tests("The forked VM terminated", nothing_passed=False) is Outcome.JVM_DIES


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("[INFO] a\n[ERROR] Failed to execute goal a:b:1:c (d) on e: it broke\n", "(d) on e: it broke"),
        ("* What went wrong:\nExecution failed for task ':a'.\n", "Execution failed for task ':a'."),
        ("[ERROR] COMPILATION ERROR : \n[ERROR] A.java:[1,2] ';' expected", "A.java:[1,2] ';' expected"),
        ("codetaste: line 2: exec: gradle: not found\n", "gradle: not found"),
        ("all is well", ""),
    ],
)  # fmt: skip
def test_reason_is_the_first_line_that_says_what_went_wrong(output: str, line: str) -> None:
    assert first_error(output) == line


@given(st.text())
def test_reason_is_always_one_line(output: str) -> None:
    assert "\n" not in first_error(output)


@pytest.mark.parametrize("words", ["Plugin id: ", "ExecutionException"])
def test_no_output_keeps_the_patterns_busy(words: str) -> None:
    """A pattern that goes on to the end of a line from each of these words would take minutes."""
    assert outcome_of_failed_build(words * 20_000) is Outcome.BUILD_FAILS
