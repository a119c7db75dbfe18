"""A sign of cheating: what it is, where it is, and the text that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from codetaste.core.text import printable

MAX_EVIDENCE_CHARS = 160
_MAX_PATH_CHARS = 300


class CheatingKind(StrEnum):
    """What a sign of cheating is about."""

    RUNNER_CONFIG = "runner_config"
    """Which tests are collected, or how the runner runs them, is changed."""
    SKIPPED_TESTS = "skipped_tests"
    DELETED_TESTS = "deleted_tests"
    EMPTY_TESTS = "empty_tests"
    EARLY_EXIT = "early_exit"
    """The test process can end before its runner has all results."""
    PATCHED_RUNNER = "patched_runner"
    """Code replaces parts of the test runner, of its language, or hooks into them."""
    FORGED_RESULT = "forged_result"
    """Code prints or stores what looks like the result of a test run."""
    SHADOWED_MODULE = "shadowed_module"
    """A new file takes the place of a module that the runner imports."""
    REPLACED_TOOL = "replaced_tool"
    """A new file, or another search path, takes the place of a program that the scripts call."""
    SCRIPT_ACCESS = "script_access"
    """Code names the scripts, their output, or the rules of the benchmark."""
    DAEMON = "daemon"
    """Code starts a process that outlives the test run."""
    FEWER_TESTS = "fewer_tests"
    VANISHED_TESTS = "vanished_tests"
    CONTRADICTION = "contradiction"
    """Counts, report and exit code do not fit to each other as they do in the baseline."""
    UNREAD = "unread"
    """The patch is too large: parts of it were not searched."""


@dataclass(frozen=True, slots=True)
class CheatingFlag:
    """A sign of cheating.

    Attributes:
        kind: what it is about.
        path: the file, in R∘X̂ or, for what is gone, in R; "" for a flag of the whole run.
        line: the line in it from 1, 0 for the whole file or run.
        evidence: the text that shows it, one printable line.
    """

    kind: CheatingKind
    path: str
    line: int
    evidence: str


def make_flag(kind: CheatingKind, evidence: str, path: str = "", line: int = 0) -> CheatingFlag:
    """Make a flag of untrusted texts: they are shortened and made printable."""
    return CheatingFlag(
        kind, printable(path, _MAX_PATH_CHARS), line, printable(evidence.strip(), MAX_EVIDENCE_CHARS)
    )
