"""``TestedAnswer``: what compiling and testing the files of an answer gave."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self


class TestOutcome(StrEnum):
    """How the compilation and the tests of an answer ended; only PASSED is a success."""

    PASSED = "passed"
    BASE_FAILS = "base_fails"
    """The files before cannot be built or tested here: no fault of the answer."""
    EDITS_TESTS = "edits_tests"
    """It changes a test file that is no part of the refactoring."""
    EDITS_BUILD = "edits_build"
    """It changes a file that decides how the project is built."""
    COMPILE_FAILS = "compile_fails"
    TESTS_FAIL = "tests_fail"
    """A test fails that did not before, or none passes."""
    HANGS = "hangs"
    """No end within the time limit."""
    OUT_OF_MEMORY = "out_of_memory"
    BUILD_ENDS = "build_ends"
    """The build ends without a result, as when the JVM of its tests dies."""


@dataclass(frozen=True, slots=True)
class TestedAnswer:
    """The result for the files of one answer.

    Attributes:
        outcome: how it ended.
        detail: the reason in one line; "" if all passed.
        compiles: whether it compiles; None if that was not tried, or did not end.
        passed: number of tests that passed.
        failed: tests that failed, or ended with an error.
        skipped: tests that did not run.
        new_failures: tests that fail and did not before; at most 200.
        jdk: feature release of the JDK.
        command: what was run.
        incremental: whether only changed files were compiled.
        tool_s: seconds of the build tool.
        log: the end of the output of a command that failed.
    """

    outcome: TestOutcome
    detail: str = ""
    compiles: bool | None = None
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    new_failures: tuple[str, ...] = ()
    jdk: int | None = None
    command: str = ""
    incremental: bool = False
    tool_s: float = 0.0
    log: str = field(default="", repr=False)

    @property
    def is_passed(self) -> bool:
        """Whether it compiles and no test fails that did not before."""
        return self.outcome is TestOutcome.PASSED

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {**asdict(self), "outcome": self.outcome.value, "new_failures": list(self.new_failures)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        return cls(
            **{**data, "outcome": TestOutcome(data["outcome"]), "new_failures": tuple(data["new_failures"])}
        )
