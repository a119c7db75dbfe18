"""How the verification of a candidate can end, and what the output of a build says about it."""

from __future__ import annotations

import re
from enum import StrEnum


class VerificationOutcome(StrEnum):
    """How the verification of a candidate ended; only VERIFIED makes an instance."""

    VERIFIED = "verified"
    MOVE_TARGET_MISSING = "move_target_missing"
    """The class that a method is moved to is not there before the commit."""
    NO_BUILD_FILE = "no_build_file"
    WRAPPER_WITHOUT_DISTRIBUTION = "wrapper_without_distribution"
    """Gradle's wrapper names a release that cannot be fetched here."""
    MISSING_JDK = "missing_jdk"
    NEEDS_DOWNLOAD = "needs_download"
    """The build needs what the allowed registries do not have, or fetches something while tests run."""
    COMPILE_FAILS_BEFORE = "compile_fails_before"
    COMPILE_FAILS_AFTER = "compile_fails_after"
    BUILD_FAILS = "build_fails"
    """The build ends with an error that is none of the others."""
    HANGS = "hangs"
    """No end within the time limit."""
    WANTS_GUI = "wants_gui"
    OUT_OF_MEMORY = "out_of_memory"
    JVM_DIES = "jvm_dies"
    """The JVM of the tests ended without a result, for a reason other than memory."""
    SANDBOX_ENDS = "sandbox_ends"
    """The build ended its sandbox, as by filling its disk."""
    NO_TESTS = "no_tests"
    TESTS_FAIL = "tests_fail"
    """No test passes, or one fails after the commit that did not before."""
    TARGET_NOT_FOUND = "target_not_found"
    """No compiled method has the lines of the target."""
    NOT_COVERED = "not_covered"


_MARKS: tuple[tuple[VerificationOutcome, re.Pattern[str]], ...] = (
    (
        VerificationOutcome.OUT_OF_MEMORY,
        re.compile(
            r"java\.lang\.OutOfMemoryError|insufficient memory for the Java Runtime|Cannot allocate memory"
            r"|Could not reserve enough space"
        ),
    ),
    (
        VerificationOutcome.WRAPPER_WITHOUT_DISTRIBUTION,
        re.compile(r"Could not install Gradle distribution|org\.gradle\.wrapper\.(?:Download|Install)"),
    ),
    (
        VerificationOutcome.NEEDS_DOWNLOAD,
        re.compile(
            r"Could not resolve dependenc|Could not find artifact|Could not transfer artifact"
            r"|in offline mode|Non-resolvable (?:parent POM|import POM)|PluginResolutionException"
            r"|Could not resolve all|No cached version of|Plugin \[?id: .{1,300} was not found"
            r"|Could not download|could not be resolved"
        ),
    ),
    (
        VerificationOutcome.COMPILE_FAILS_BEFORE,
        re.compile(
            r"COMPILATION ERROR|Compilation failure|Compilation failed; see the compiler error output"
            r"|invalid (?:target|source) release|Source option \d+ is no longer supported"
            r"|release version \d+ not supported|Unsupported class file major version"
            r"|Could not target platform|No toolchain found"
        ),
    ),
    (
        VerificationOutcome.WANTS_GUI,
        re.compile(r"java\.awt\.HeadlessException|No X11 DISPLAY variable|X11 window server|libawt_xawt"),
    ),
    (
        VerificationOutcome.JVM_DIES,
        re.compile(
            r"The forked VM terminated|ExecutionException.{0,300}forked VM"
            r"|Error occurred in starting fork"
            r"|Process 'Gradle Test Executor \d+' finished with non-zero exit value|SIGSEGV"
        ),
    ),
    (
        VerificationOutcome.NEEDS_DOWNLOAD,
        re.compile(r"UnknownHostException|ConnectException: Connection refused|Network is unreachable"),
    ),
)
"""Texts in the output of a failed build, the most certain first."""
_REASONS_OF_FAILED_TESTS = {
    VerificationOutcome.OUT_OF_MEMORY,
    VerificationOutcome.WANTS_GUI,
    VerificationOutcome.NEEDS_DOWNLOAD,
}
_REASON = re.compile(
    r"^\[ERROR\]\s+(?!\s|COMPILATION ERROR)(?:Failed to execute goal \S+ )?(.{10,})"
    r"|^\* What went wrong:\s*\n(.+)|: exec: (\S{1,100}: not found)$",
    re.MULTILINE,
)


def outcome_of_failed_build(output: str) -> VerificationOutcome:
    """Return what the output of a failed build says; COMPILE_FAILS_BEFORE stands for both sides."""
    return next((outcome for outcome, mark in _MARKS if mark.search(output)), VerificationOutcome.BUILD_FAILS)


def outcome_of_ended_tests(output: str, *, nothing_passed: bool) -> VerificationOutcome | None:
    """Return why no result of a build's tests counts; None if they count.

    The build goes on when the JVM of its tests dies.
    """
    died = any(mark.search(output) for outcome, mark in _MARKS if outcome is VerificationOutcome.JVM_DIES)
    if not died and not nothing_passed:
        return None
    found = outcome_of_failed_build(output)
    if found in _REASONS_OF_FAILED_TESTS:
        return found
    return VerificationOutcome.JVM_DIES if died else VerificationOutcome.TESTS_FAIL


def first_error(output: str) -> str:
    """Return the first line of a build's output that says what went wrong, "" if there is none."""
    found = _REASON.search(output)
    return " ".join((found[1] or found[2] or found[3]).split()) if found else ""
