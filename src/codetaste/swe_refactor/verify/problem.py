"""Which outcome a failed command of a build has, and its reason in one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from codetaste.core.text import printable
from codetaste.core.units import format_duration
from codetaste.java.build.commands import Goal
from codetaste.sandbox.base import EndReason
from codetaste.swe_refactor.verify.outcome import VerificationOutcome, first_error, outcome_of_failed_build

if TYPE_CHECKING:
    from codetaste.sandbox.base import SandboxEnd
    from codetaste.swe_refactor.verify.project_sandbox import BuildRun

_CHARS = 800
_WHILE_HANGING = {VerificationOutcome.WANTS_GUI, VerificationOutcome.OUT_OF_MEMORY}
"""What a build that had no end may have said before."""


def outcome_of_run(run: BuildRun, *, after: bool) -> VerificationOutcome:
    """Return the outcome of a command that did not succeed, on the side after or before the commit."""
    if run.lacked_memory:
        return VerificationOutcome.OUT_OF_MEMORY
    outcome = outcome_of_failed_build(run.output)
    if run.result.timed_out:
        return outcome if outcome in _WHILE_HANGING else VerificationOutcome.HANGS
    if outcome is VerificationOutcome.COMPILE_FAILS_BEFORE and after:
        return VerificationOutcome.COMPILE_FAILS_AFTER
    return outcome


def outcome_of_end(end: SandboxEnd | None) -> VerificationOutcome | None:
    """Return the outcome of a build that ended its sandbox; None if it ended for another reason, or not."""
    if end is None or not end.reason.caused_by_agent:
        return None
    if end.reason is EndReason.OUT_OF_MEMORY:
        return VerificationOutcome.OUT_OF_MEMORY
    return VerificationOutcome.SANDBOX_ENDS


def describe_problem(outcome: VerificationOutcome, side: str, run: BuildRun) -> str:
    """Return the reason in one line."""
    what = "compilation" if run.goal is Goal.COMPILE else "the build with tests"
    if outcome is VerificationOutcome.HANGS:
        return f"{what} of the side {side} had no end within {format_duration(run.result.wall_s)}"
    if outcome is VerificationOutcome.TESTS_FAIL:
        return f"no test of the side {side} passes"
    reason = printable(first_error(run.output), _CHARS)
    code = "no exit code" if run.result.exit_code is None else f"exit code {run.result.exit_code}"
    return f"{what} of the side {side} ({code})" + (f": {reason}" if reason else "")
