"""``Verification``: what the verification of a candidate gave, as data that a run stores."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from codetaste.java.build.coverage import Counter, MethodCoverage
from codetaste.swe_refactor.verify.outcome import VerificationOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

LOG_CHARS = 8000
"""How much of the end of a failed command's output is stored."""


@dataclass(frozen=True, slots=True)
class SideRun:
    """All tests of one side.

    Attributes:
        passed: number of tests that passed.
        failed: tests that failed, or ended with an error.
        skipped: tests that did not run.
        failures: names of the failed ones, sorted; at most 200.
        coverage: of the candidate's methods of this side, in their order; None for one that was not found.
        tool_s: seconds of the build tool.
        notes: what of the reports could not be read, one line each.
    """

    passed: int
    failed: int
    skipped: int
    failures: tuple[str, ...] = ()
    coverage: tuple[MethodCoverage | None, ...] = ()
    tool_s: float = 0.0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Verification:
    """The result for one candidate.

    Attributes:
        outcome: how it ended.
        detail: the reason in one line; "" for a verified one.
        tool: "maven" or "gradle"; "" if nothing was found.
        jdk: feature release of the JDK that compiles both sides; None if none did.
        evidence: what the project says about its JDK, one line each.
        commands: the commands that compile and test it.
        compiles_before: whether the side before compiles; None if that was not tried.
        compiles_after: whether the side after compiles.
        before: tests before the commit; None if they were not run to their end.
        after: tests after it.
        new_failures: tests that fail after it and not before.
        refused_hosts: hosts that the build asked for and did not get.
        fetch_s: seconds of fetching dependencies and choosing the JDK; 0 if all was there.
        tool_s: seconds of the build tool in the tests of both sides.
        total_s: seconds of everything.
        log: the end of the output of the command that failed.
    """

    outcome: VerificationOutcome
    detail: str = ""
    tool: str = ""
    jdk: int | None = None
    evidence: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    compiles_before: bool | None = None
    compiles_after: bool | None = None
    before: SideRun | None = None
    after: SideRun | None = None
    new_failures: tuple[str, ...] = ()
    refused_hosts: tuple[str, ...] = ()
    fetch_s: float = 0.0
    tool_s: float = 0.0
    total_s: float = 0.0
    log: str = field(default="", repr=False)

    @property
    def is_verified(self) -> bool:
        """Whether the candidate can become an instance."""
        return self.outcome is VerificationOutcome.VERIFIED

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON data."""
        return {**asdict(self), "outcome": self.outcome.value}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read what ``to_json`` returned."""
        lists = ("evidence", "commands", "new_failures", "refused_hosts")
        return cls(
            **{
                **data,
                "outcome": VerificationOutcome(data["outcome"]),
                "before": _side(data["before"]),
                "after": _side(data["after"]),
                **{name: tuple(data[name]) for name in lists},
            }
        )


def _side(data: Mapping[str, Any] | None) -> SideRun | None:
    if data is None:
        return None
    coverage = tuple(None if each is None else _coverage(each) for each in data["coverage"])
    return SideRun(
        **{**data, "failures": tuple(data["failures"]), "coverage": coverage, "notes": tuple(data["notes"])}
    )


def _coverage(data: Mapping[str, Any]) -> MethodCoverage:
    return MethodCoverage(
        **{
            **data,
            "counters": {name: Counter(**counter) for name, counter in data["counters"].items()},
            "covered_lines": tuple(data["covered_lines"]),
            "missed_lines": tuple(data["missed_lines"]),
        }
    )
