"""The section ``[mine.scoring]``."""

from __future__ import annotations

from pydantic import Field

from codetaste.core.section import Section
from codetaste.core.units import Usd
from codetaste.mining.scoring.diff_cut import MIN_CHARS


class ScoringConfig(Section):
    """``[mine.scoring]``: the model that scores commits, how many are chosen, and what it is shown."""

    model: str
    """Id of a model in ``[[models]]``; a small one does (the paper uses Claude Haiku 4.5)."""
    top_by_message: int = Field(default=1120, ge=1)
    """As many commits with the highest scores of their messages have their diffs scored."""
    top: int = Field(default=160, ge=1)
    """As many commits with the highest total scores become candidates."""
    budget_usd: Usd | None = None
    """US dollars for the scores of one mining run."""
    tries: int = Field(default=3, ge=1, le=20)
    """Replies of the model about one commit; if none is usable, the commit is dropped."""
    message_chars: int = Field(default=20_000, ge=MIN_CHARS)
    """Characters of a message that the model is shown."""
    diff_chars: int = Field(default=60_000, ge=MIN_CHARS)
    """Characters to which a diff is cut, with every file visible; fewer if the model cannot take so many."""
    max_output_tokens: int = Field(default=8192, ge=256)
    """The cap of one reply."""
