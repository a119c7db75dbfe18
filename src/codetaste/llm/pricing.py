"""What tokens cost: US dollars for a million of them, exact.

A config's ``price`` is the only source of prices today. ``price_of`` is where a table of known prices comes
in for models whose config names none.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Any

from pydantic import model_validator

from codetaste.section import Section
from codetaste.units import Usd

if TYPE_CHECKING:
    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Usage

_MILLION = Decimal(1_000_000)
_DIGITS = 100
"""More than any count times any price has, so that nothing is ever rounded."""


class Price(Section):
    """US dollars for a million tokens of each kind."""

    input: Usd
    """Prompt tokens that no cache had a part in."""
    output: Usd
    """Tokens of the reply, reasoning included."""
    cache_read: Usd = Decimal(0)
    """Prompt tokens read from the provider's cache; default: as `input`."""
    cache_write: Usd = Decimal(0)
    """Prompt tokens written to the cache, at the time to live that is asked for; default: as `input`."""

    @model_validator(mode="before")
    @classmethod
    def _cache_as_input(cls, given: Any) -> Any:  # noqa: ANN401 - from a config
        if isinstance(given, dict) and "input" in given:
            return {"cache_read": given["input"], "cache_write": given["input"], **given}
        return given

    @property
    def dearest_input(self) -> Decimal:
        """The price of a prompt token in the worst case."""
        return max(self.input, self.cache_read, self.cache_write)

    def cost_usd(self, usage: Usage) -> Decimal:
        """Return what ``usage`` costs, in US dollars, exact."""
        with localcontext(prec=_DIGITS):
            dollars = (
                usage.input * self.input
                + usage.cache_read * self.cache_read
                + usage.cache_write * self.cache_write
                + usage.output * self.output
            )
            return dollars / _MILLION

    def bound_usd(self, prompt: int, output: int) -> Decimal:
        """Return the most that a call of so many tokens can cost, in US dollars, exact."""
        with localcontext(prec=_DIGITS):
            return (prompt * self.dearest_input + output * self.output) / _MILLION

    def affordable_output(self, prompt: int, usd: Decimal) -> int | None:
        """Return how many output tokens ``usd`` dollars pay for after the prompt.

        None means any number, -1 that not even the prompt is paid for.
        """
        if self.output == 0:
            return None
        with localcontext(prec=_DIGITS):
            left = usd * _MILLION - prompt * self.dearest_input
            return -1 if left < 0 else int(left // self.output)


def price_of(config: ModelConfig) -> Price | None:
    """Return the price of a model, or None where nobody knows it."""
    return config.price


def budget_problems(config: ModelConfig) -> list[str]:
    """Say why a model cannot run under a budget in US dollars; nothing where it can."""
    from codetaste.llm.bound import billed_apart  # noqa: PLC0415 - it prices with this module

    problems = []
    if price_of(config) is None:
        problems.append(
            f"models[{config.id}].price: not known, so no budget in US dollars can hold; write "
            "price = { input = …, output = … } (US dollars for a million tokens)"
        )
    problems.extend(
        f"models[{config.id}].options.{name}: the provider bills it apart from tokens, so no budget in "
        "US dollars can hold; remove it"
        for name in billed_apart(config.options)
    )
    return problems
