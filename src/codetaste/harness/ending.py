"""How an agent's run ended, in one of the published finish reasons.

It is a success only if exit code, last event and last words agree: programs end with 0 on errors of their
provider, on signals, and on bounds of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from decimal import Decimal

    from codetaste.harness.events import Told
    from codetaste.harness.manifest import Manifest
    from codetaste.llm.messages import Usage
    from codetaste.sandbox.sandbox import Completed

FinishReason = Literal["success", "timeout", "execution_error", "error", "unknown", "budget_exceeded"]
_STDERR_CHARS = 4000
_SIGNALLED = 128


@dataclass(frozen=True, slots=True)
class AgentEnd:
    """How an agent ended, and what it says of itself; None is what it does not say.

    Attributes:
        finish_reason: as in the published ``inference_metadata.json``.
        problem: why it is no success, in one line.
        exit_code: None when it was killed.
        turns: answers of its model.
        tool_calls: tools that were called.
        usage: tokens, as it counts them.
        cost_usd: its own number, in US dollars; never what was billed.
        message: its last words, shortened.
        stderr: the end of what it wrote to standard error.
        wall_s: how long it took, in seconds.
        stream_bytes: how much it wrote to standard output.
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


def own_ending(completed: Completed, told: Told, manifest: Manifest) -> tuple[FinishReason, str]:
    """Say how a program ended that nobody ended, and in one line why it is no success."""
    code = completed.exit_code
    said = one_line(told.message or errors_of(completed))
    how = manifest.exit_codes.get(str(code), "")
    claim = _claim(told, said or how)
    if claim is not None:
        return claim
    if code is None or code < 0 or code > _SIGNALLED:
        return "execution_error", how or f"it was killed ({code}): {said}"
    if code:
        return "execution_error", ": ".join(filter(None, (f"it ended with {code}", how, said)))
    if manifest.ends and told.outcome != "success":
        return "unknown", "it ended with 0, and said nothing of its end"
    return "success", ""


def _claim(told: Told, said: str) -> tuple[FinishReason, str] | None:
    """What the program itself says, where that is no success."""
    if told.outcome == "budget":
        return "budget_exceeded", "it came to a bound of its own on what it may cost"
    if told.outcome == "error":
        return "error", said or "it says that it failed"
    return ("error", one_line(told.problem)) if told.problem else None


def errors_of(completed: Completed | None) -> str:
    """Return the end of what it wrote to standard error."""
    return completed.stderr.decode(errors="replace")[-_STDERR_CHARS:] if completed else ""


def one_line(text: str, most: int = 300) -> str:
    """Return ``text`` in one line of at most ``most`` characters."""
    said = " ".join(text.split())
    return said if len(said) <= most else said[: most - 1] + "…"
