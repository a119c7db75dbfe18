"""``[[agents]]``: who works on tasks, with which model, and for how much."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from codetaste.section import Section, plain
from codetaste.units import Seconds, Usd

if TYPE_CHECKING:
    from typing import Self

OWN = "codetaste"
"""The harness that is no other program but our own loop."""
PAPERS_BUDGET_USD = Decimal(11)
"""What the paper grants a task (CodeTaste §4.2)."""
PUBLISHED_TIME_LIMIT_S = 90 * 60.0
"""What the published harness grants a task."""
OWN_TURNS, OWN_OUTPUT_TOKENS = 200, 16_384


class AgentConfig(Section):
    """A coding agent. It costs nothing until a track uses it."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """What the rest of the file calls it, and the name of its folder among the outputs."""
    harness: str = Field(min_length=1)
    """A folder under agents/, a path to one like it (relative to the config file), or "codetaste": our own
    loop, with which any model can work."""
    version: str | None = None
    """Which release of the program; its adapter's default where nothing is said."""
    model: str
    """The id of one of [[models]]."""
    budget_usd: Usd = PAPERS_BUDGET_USD
    """US dollars for one trial: plan, judgement and execution together."""
    time_limit: Seconds = PUBLISHED_TIME_LIMIT_S
    """Working time of one trial, all its steps together; waiting for a slot, a rate limit or money is left
    out."""
    max_turns: int | None = Field(default=None, ge=1)
    """Model calls of one step; for our own loop, 200 where nothing is said."""
    max_output_tokens: int | None = Field(default=None, ge=1024)
    """The cap of one reply; for our own loop, 16,384 where nothing is said."""
    options: dict[str, Any] = Field(default_factory=dict)
    """The harness' own: its adapter says which there are. For our own loop those of the model's provider."""

    @field_validator("options")
    @classmethod
    def _plain_options(cls, options: dict[str, Any]) -> dict[str, Any]:
        told: dict[str, Any] = plain(options)
        return told

    @model_validator(mode="after")
    def _of_the_own_loop(self) -> Self:
        if self.own and self.version is not None:
            raise ValueError('version is not for harness "codetaste", which is this program')
        for name in () if self.own else ("max_turns", "max_output_tokens"):
            if getattr(self, name) is not None:
                raise ValueError(f'{name} is for harness "codetaste"; other programs take options')
        return self

    @property
    def own(self) -> bool:
        """Whether our own loop does the work."""
        return self.harness == OWN
