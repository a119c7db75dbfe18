"""``[[agents]]``: the coding agents, each with its model, budget and limits."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from codetaste.core.section import PathText, Section, toml_to_json
from codetaste.core.units import Seconds, Usd
from codetaste.harness.manifest import check_env

if TYPE_CHECKING:
    from typing import Self

OWN_LOOP = "codetaste"
"""The harness that is codetaste's own tool-use loop instead of a CLI agent."""
PAPER_BUDGET_USD = Decimal(11)
"""The paper's budget of one task (CodeTaste §4.2)."""
PUBLISHED_TIME_LIMIT_S = 90 * 60.0
"""The published harness' time limit of one task."""
DEFAULT_MAX_TURNS, DEFAULT_MAX_OUTPUT_TOKENS = 200, 16_384


class AgentConfig(Section):
    """A coding agent. It has no effect until a track uses it."""

    id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")
    """Its name in the rest of the file, and the name of its output folder."""
    harness: PathText
    """A folder under agents/, the path of a similar folder (relative to the config file), or "codetaste":
    codetaste's own loop, which works with any model."""
    version: str | None = None
    """The release to install; by default that of its adapter."""
    model: str
    """The id of one of [[models]]."""
    budget_usd: Usd = PAPER_BUDGET_USD
    """US dollars for one trial: plan, judge and execution together, unless [[tracks]] budgets is "step"."""
    time_limit: Seconds = PUBLISHED_TIME_LIMIT_S
    """Working time of one trial, all its steps together unless [[tracks]] budgets is "step"; waiting for a
    permit, a rate limit or money does not count."""
    max_turns: int | None = Field(default=None, ge=1)
    """Maximum model calls of one step; only for codetaste's own loop, 200 by default."""
    max_output_tokens: int | None = Field(default=None, ge=256)
    """Maximum output tokens of one reply; only for codetaste's own loop, 16,384 by default."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the harness, declared by its adapter. For codetaste's own loop, options of the provider."""

    env: dict[str, str] = Field(default_factory=dict)
    """Environment variables of its program in the sandbox. No secrets: an agent can read and print them."""

    @field_validator("env")
    @classmethod
    def _check_env(cls, env: dict[str, str]) -> dict[str, str]:
        return check_env(env)

    @field_validator("options")
    @classmethod
    def _options_to_json(cls, options: dict[str, Any]) -> dict[str, Any]:
        json_options: dict[str, Any] = toml_to_json(options)
        return json_options

    @model_validator(mode="after")
    def _check_harness_keys(self) -> Self:
        if self.uses_own_loop and self.version is not None:
            raise ValueError('version is not for harness "codetaste", which is this program')
        for name in () if self.uses_own_loop else ("max_turns", "max_output_tokens"):
            if getattr(self, name) is not None:
                raise ValueError(f'{name} is for harness "codetaste"; other programs take options')
        if self.uses_own_loop and self.env:
            raise ValueError('env is not for harness "codetaste", which has no program in the sandbox')
        return self

    @property
    def uses_own_loop(self) -> bool:
        """Whether codetaste's own loop is the agent."""
        return self.harness == OWN_LOOP
