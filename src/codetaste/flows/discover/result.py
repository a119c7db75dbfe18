"""The result of a discovery pass, as it is journalled."""

from __future__ import annotations

from dataclasses import dataclass

from codetaste.agent.loop import LoopEnd
from codetaste.core.text import plural


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The rules of a pass: their number, and the digest of the text of the rule file."""

    finish_reason: str
    turns: int
    tool_calls: int
    rules: int
    engine: str
    rules_digest: str

    def describe(self) -> str:
        """Describe the result in one line."""
        # The line of the job shows any other reason.
        finished = "finished, " if self.finish_reason == LoopEnd.FINISHED else ""
        return f"{plural(self.rules, 'rule')} ({finished}{plural(self.turns, 'turn')})"
