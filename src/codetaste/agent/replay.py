"""Replay recorded tool calls in a new sandbox, to restore the changes lost with the old one.

A sandbox and its files end with the process that opened it. When a loop is resumed from the journal, each
recorded call of a tool with ``replay_on_resume`` is repeated in the new sandbox, in order. No model call is
paid for: the recorded answers stay valid. If a repeated call ends differently, the files may differ from what
the model saw, and a note says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import BudgetExceeded, EngineError, JournalError, SandboxError
from codetaste.orchestration.wait import Wait, WaitReason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.agent.facts import HasFacts
    from codetaste.agent.tool import Tool
    from codetaste.llm.messages import ToolCall
    from codetaste.orchestration.job import JobContext

INFRASTRUCTURE_ERRORS = (BudgetExceeded, EngineError, JournalError, SandboxError)
"""Errors that a model cannot correct: they are not recorded as answers, and the job is retried."""


async def replay_tool_call(
    tool: Tool, call: ToolCall, context: HasFacts, job: JobContext, name: str, recorded: Mapping[str, Any]
) -> None:
    """Repeat a recorded call; its time is not charged a second time.

    Raises:
        SandboxError: the new sandbox has ended, too; likewise for the other ``INFRASTRUCTURE_ERRORS``.
    """
    failed = False
    with job.waiting(Wait(WaitReason.REPLAY)):
        try:
            await tool.call(context, call.arguments)
        except INFRASTRUCTURE_ERRORS:
            raise
        except (Exception, SystemExit):  # noqa: BLE001 - the first time it was recorded as an answer
            failed = True
    facts = context.facts.drop_pending()
    if failed:
        facts = []
    if failed != recorded["is_error"] or facts != recorded["facts"]:
        before = _describe(recorded["is_error"], recorded["facts"])
        job.note(
            f"{name}: {call.name} was repeated in a new sandbox and ended differently "
            f"(now: {_describe(failed, facts)}; before: {before}): "
            "files may differ from what the model saw"
        )


def _describe(failed: bool, facts: list[list[Any]]) -> str:
    return "refused" if failed else ", ".join(f"{kind} {fact}" for kind, fact in facts) or "done"
