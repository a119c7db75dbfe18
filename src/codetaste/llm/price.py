"""Prices of tokens in US dollars per million, and exact cost arithmetic.

A price comes from the config, or else from a maintained table (``price_table.py``). It is not part of a job's
identity: a changed price does not repeat any paid call.
"""

from __future__ import annotations

from decimal import Decimal, InvalidOperation, localcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from codetaste.core.section import Section
from codetaste.core.units import Usd

if TYPE_CHECKING:
    from collections.abc import Iterator

    from codetaste.llm.messages import Usage


_MILLION = Decimal(1_000_000)

STANDARD_OPTIONS = {
    "service_tier": frozenset({"default", "standard_only"}),
    "speed": frozenset({"standard"}),
    "inference_geo": frozenset({"global"}),
}
"""Options that may change the price of a token, and the values with which they do not."""

ROUTING_OPTIONS = ("provider", "route", "preset")
"""Options by which a router (OpenRouter) selects another seller of the same model, at another price."""

_DIGITS = 100
"""More digits than any count times any price has, so that nothing is rounded."""

_WRITE_FACTORS = {"5m": Decimal("1.25"), "30m": Decimal("1.25"), "1h": Decimal(2)}

_LONGEST_WRITE_FACTOR = Decimal("2.5")
"""The highest price of a cache write by time to live, as a factor of the input price."""


class Rates(Section):
    """US dollars for a million tokens of each kind."""

    input: Usd
    """Prompt tokens that were neither read from a cache nor written to one."""
    output: Usd
    """Tokens of the reply, reasoning included."""
    cache_read: Usd = Decimal(0)
    """Prompt tokens read from the provider's cache; default: same as `input`."""
    cache_write: Usd = Decimal(0)
    """Prompt tokens written to the cache, for the longest time to live in the options; default: 1.25 times
    `input`, twice for an hour, same as `input` for models without a remote provider."""

    @model_validator(mode="before")
    @classmethod
    def _default_cache_prices(cls, given: Any) -> Any:  # noqa: ANN401 - from a config
        if isinstance(given, dict) and "input" in given:
            return {"cache_read": given["input"], "cache_write": given["input"], **given}
        return given


class LongRates(Rates):
    """Prices for all tokens of a call with a long prompt."""

    tokens: int = Field(ge=1)
    """These prices apply to prompts of more than this many tokens."""


class Price(Rates):
    """US dollars for a million tokens of each kind."""

    above: tuple[LongRates, ...] = ()
    """Other prices for longer prompts, in ascending order of `tokens`."""
    per_request: Usd = Decimal(0)
    """US dollars for each request, besides its tokens."""

    @field_validator("above")
    @classmethod
    def _check_order(cls, above: tuple[LongRates, ...]) -> tuple[LongRates, ...]:
        if any(one.tokens >= other.tokens for one, other in pairwise(above)):
            raise ValueError("each entry must be for longer prompts than the one before it")
        return above

    def cost_usd(self, usage: Usage) -> Decimal:
        """Return what ``usage`` costs, in US dollars, exact."""
        *_, rates = self._rates_up_to(usage.prompt)
        with localcontext(prec=_DIGITS):
            dollars = (
                usage.input * rates.input
                + usage.cache_read * rates.cache_read
                + usage.cache_write * rates.cache_write
                + usage.output * rates.output
            )
            return dollars / _MILLION + self.per_request

    def bound_usd(self, prompt: int, output: int) -> Decimal:
        """Return an upper bound of the cost of a call with at most so many tokens, in US dollars, exact."""
        input_price, output_price = self._highest_prices(prompt)
        with localcontext(prec=_DIGITS):
            return (prompt * input_price + output * output_price) / _MILLION + self.per_request

    def with_extra(self, usd: Decimal) -> Price:
        """Return this price with ``usd`` dollars more for each request."""
        return self.model_copy(update={"per_request": self.per_request + usd}) if usd else self

    def affordable_output(self, prompt: int, usd: Decimal) -> int | None:
        """Return how many output tokens ``usd`` dollars pay for after a prompt of at most ``prompt`` tokens.

        None means any number; -1 means that the prompt alone costs more.
        """
        input_price, output_price = self._highest_prices(prompt)
        with localcontext(prec=_DIGITS):
            left = (usd - self.per_request) * _MILLION - prompt * input_price
            if left < 0:
                return -1
            return None if output_price == 0 else int(left // output_price)

    def differences(self, other: Price) -> Iterator[str]:
        """Yield in words, by length of the prompt, which prices of a token are not those of ``other``."""
        for tokens in (0, *sorted({rates.tokens for rates in (*self.above, *other.above)})):
            *_, mine = self._rates_up_to(tokens + 1)
            *_, theirs = other._rates_up_to(tokens + 1)
            pairs = ((kind, getattr(mine, kind), getattr(theirs, kind)) for kind in Rates.model_fields)
            if different := [f"{kind} {one:f} instead of {two:f}" for kind, one, two in pairs if one != two]:
                yield (f"above {tokens} prompt tokens " if tokens else "") + ", ".join(different)

    def _rates_up_to(self, prompt: int) -> Iterator[Rates]:
        """Yield the rates for all prompt lengths up to ``prompt``; the last ones apply to it."""
        yield self
        yield from (rates for rates in self.above if prompt > rates.tokens)

    def _highest_prices(self, prompt: int) -> tuple[Decimal, Decimal]:
        """Return the highest input and output price of a token, for any prompt up to this length."""
        reached = list(self._rates_up_to(prompt))
        inputs = (max(rates.input, rates.cache_read, rates.cache_write) for rates in reached)
        return max(inputs), max(rates.output for rates in reached)


def cache_write_factor(options: object) -> Decimal:
    """Return the highest price of a cache write with these options, as a factor of the input price.

    Usage has one count for all cache writes, so the longest time to live anywhere in the options applies to
    all of them; the result is never too low.
    """
    return max(_WRITE_FACTORS.get(ttl, _LONGEST_WRITE_FACTOR) for ttl in ("5m", *cache_ttls(options)))


def cache_ttls(options: object) -> Iterator[str]:
    """Yield each cache time to live anywhere in ``options``."""
    if isinstance(options, dict):
        if isinstance(ttl := options.get("ttl"), str):
            yield ttl
        for value in options.values():
            yield from cache_ttls(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from cache_ttls(value)


def fill_cache_write_price(rates: object, factor: Decimal) -> object:
    """Return the config table ``rates``, and the tables in its ``above``, with ``cache_write`` filled in."""
    if not isinstance(rates, dict):
        return rates
    filled = dict(rates)
    if isinstance(rates.get("above"), list | tuple):
        filled["above"] = [fill_cache_write_price(longer, factor) for longer in rates["above"]]
    try:
        filled.setdefault("cache_write", Decimal(str(rates.get("input"))) * factor)
    except InvalidOperation:
        return rates  # the validation of the field reports what is wrong
    return filled
