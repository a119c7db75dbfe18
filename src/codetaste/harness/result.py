"""The result of an agent's run, with one of the published finish reasons.

A run is a success only if exit code, last event and last message agree: CLI agents exit with 0 on errors of
their provider, on signals, and on limits of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from codetaste.benchmark.layout import FinishReason
from codetaste.core.text import one_line

if TYPE_CHECKING:
    from decimal import Decimal

    from codetaste.harness.manifest import AgentManifest
    from codetaste.harness.output import ReportedResult
    from codetaste.llm.messages import Usage
    from codetaste.sandbox.base import CommandResult

_REPORTED_ENDS = {
    **{
        reason.value: (reason, f"it reported {reason.replace('_', ' ')}")
        for reason in FinishReason
        if reason not in {FinishReason.SUCCESS, FinishReason.ERROR}
    },
    "budget": (FinishReason.BUDGET_EXCEEDED, "it reached its own cost limit"),
}
"""Finish reasons that count whatever the exit code is, by reported outcome."""
_STDERR_CHARS = 4000
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class AgentResult:
    """How an agent ended, and the numbers that it reports; None is a number that it does not report.

    Attributes:
        finish_reason: as in the published ``inference_metadata.json``.
        problem: why the run is not a success, in one line.
        exit_code: None if the agent was killed.
        turns: replies of its model.
        tool_calls: number of tool calls.
        usage: tokens, as the agent counts them.
        cost_usd: the cost that the agent reports, in US dollars; never the billed cost.
        message: its last message, shortened.
        stderr: the end of its standard error.
        wall_s: its running time, in seconds.
        stream_bytes: bytes of its standard output.
    """

    finish_reason: FinishReason
    problem: str = ""
    exit_code: int | None = None
    turns: int | None = None
    tool_calls: int | None = None
    usage: Usage | None = None
    cost_usd: Decimal | None = None
    message: str = ""
    stderr: str = ""
    wall_s: float = 0.0
    stream_bytes: int = 0


def result_of_exit(
    completed: CommandResult, reported: ReportedResult, manifest: AgentManifest
) -> tuple[FinishReason, str]:
    """Return the finish reason of an agent that exited by itself, and in one line why it is not a success."""
    code = completed.exit_code
    message = one_line(reported.message or stderr_tail(completed))
    meaning = manifest.exit_codes.get(str(code), "")
    if reported.outcome in _REPORTED_ENDS:
        return _REPORTED_ENDS[reported.outcome]
    if reported.outcome == "error" or reported.problem:
        failure = message or meaning or "it reported a failure"
        return FinishReason.ERROR, failure if reported.outcome == "error" else one_line(reported.problem)
    if code is None or code < 0 or code > _SIGNALLED:
        return FinishReason.EXECUTION_ERROR, meaning or f"it was killed ({code}): {message}"
    if code:
        return FinishReason.EXECUTION_ERROR, ": ".join(
            filter(None, (f"it exited with {code}", meaning, message))
        )
    if manifest.end_events and reported.outcome != "success":
        return FinishReason.UNKNOWN, "it exited with 0, but reported no result"
    return FinishReason.SUCCESS, ""


def stderr_tail(completed: CommandResult | None) -> str:
    """Return the end of the agent's standard error."""
    return completed.stderr.decode(errors="replace")[-_STDERR_CHARS:] if completed else ""
