"""The result of a discovery pass, as it is journalled."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from codetaste.agent.loop import LoopEnd
from codetaste.core.text import plural

if TYPE_CHECKING:
    from typing import Self

    from codetaste.orchestration.journal.journal import Json


@dataclass(frozen=True, slots=True)
class DiscoveryResult:
    """The rules of a pass: their number, and the digest of the text of the rule file."""

    finish_reason: str
    turns: int
    tool_calls: int
    rules: int
    engine: str
    rules_digest: str

    def to_json(self) -> Json:
        """Return the result as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Any) -> Self:  # noqa: ANN401 - JSON
        """Read what ``to_json`` returned."""
        return cls(**data)

    def describe(self) -> str:
        """Describe the result in one line."""
        # The line of the job shows any other reason.
        finished = "finished, " if self.finish_reason == LoopEnd.FINISHED else ""
        return f"{plural(self.rules, 'rule')} ({finished}{plural(self.turns, 'turn')})"
