"""Recorded tool calls made again, so that what died with an earlier process is there once more.

A box and its files end with the process that opened it. When a conversation is taken up from the journal,
each recorded call of a tool that changes the box is made again in the new one, in order. Nothing is bought:
the model was told the recorded answers, and they stand. Where a call now ends otherwise than it did, the
files may differ from what the model believes, and the person who watches is told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from codetaste.errors import BudgetExceeded, EngineError, JournalError, SandboxError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from codetaste.agent.facts import HasFacts
    from codetaste.agent.tool import Tool
    from codetaste.llm.messages import ToolCall
    from codetaste.orchestration.job import JobContext

NOT_THE_MODELS = (BudgetExceeded, EngineError, JournalError, SandboxError)
"""What no model can mend, and no answer may record: the job's own retries make the call again."""
WAIT = "the box to be as it was"


async def make_again(
    tool: Tool, call: ToolCall, context: HasFacts, job: JobContext, name: str, recorded: Mapping[str, Any]
) -> None:
    """Make a recorded call again. Its time was charged when it was first made, and is not charged again.

    Raises:
        SandboxError: the new box is gone as well, or whatever else no model can mend.
    """
    failed = False
    with job.waiting(WAIT):
        try:
            await tool.call(context, call.arguments)
        except NOT_THE_MODELS:
            raise
        except (Exception, SystemExit):  # noqa: BLE001 - as the first time, when it was an answer
            failed = True
    facts = context.facts.drop_pending()
    if failed:
        facts = []
    if failed != recorded["is_error"] or facts != recorded["facts"]:
        was, now = (_told(*each) for each in ((recorded["is_error"], recorded["facts"]), (failed, facts)))
        job.note(
            f"{name}: {call.name} was run again in a new box and ended otherwise ({now}; was: {was}): "
            "files may differ from what the model saw"
        )


def _told(failed: bool, facts: list[list[Any]]) -> str:
    return "refused" if failed else ", ".join(f"{kind} {fact}" for kind, fact in facts) or "done"
