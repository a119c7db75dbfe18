"""What tokens cost: US dollars for a million of them, exact.

A price comes from the config, or else from a maintained table (``price_table.py``) that is asked only where
the config says nothing. It is part of a run's money and not of a job's identity: another price buys nothing
again.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, InvalidOperation, localcontext
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from pydantic import Field, field_validator, model_validator

from codetaste.section import Section
from codetaste.units import Usd

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.messages import Usage

_MILLION = Decimal(1_000_000)
STANDARD = {
    "service_tier": frozenset({"default", "standard_only"}),
    "speed": frozenset({"standard"}),
    "inference_geo": frozenset({"global"}),
}
"""Options that may change the price of a token, and what they say where they do not."""
ROUTES = ("provider", "route", "preset")
"""Options by which a router (OpenRouter) has somebody else serve the same model, at a price of his own."""
_DIGITS = 100
"""More than any count times any price has, so that nothing is ever rounded."""
_NAMES = 20
"""Names of a model that are told of before a provider that calls it something else each time is let be."""
_WRITTEN = {"5m": Decimal("1.25"), "30m": Decimal("1.25"), "1h": Decimal(2)}
_WRITTEN_FOR_LONG = Decimal("2.5")
"""What it costs at most to keep a prompt in a provider's cache for so long, times the price of the prompt."""


class Rates(Section):
    """US dollars for a million tokens of each kind."""

    input: Usd
    """Prompt tokens that no cache had a part in."""
    output: Usd
    """Tokens of the reply, reasoning included."""
    cache_read: Usd = Decimal(0)
    """Prompt tokens read from the provider's cache; default: as `input`."""
    cache_write: Usd = Decimal(0)
    """Prompt tokens written to the cache, for the longest time that the options ask for; default: 1.25 times
    `input`, twice for an hour, as `input` where there is no provider."""

    @model_validator(mode="before")
    @classmethod
    def _cache_as_input(cls, given: Any) -> Any:  # noqa: ANN401 - from a config
        if isinstance(given, dict) and "input" in given:
            return {"cache_read": given["input"], "cache_write": given["input"], **given}
        return given


class LongRates(Rates):
    """What all tokens of a call cost whose prompt is long."""

    tokens: int = Field(ge=1)
    """The longest prompt that is not yet priced like this."""


class Price(Rates):
    """US dollars for a million tokens of each kind."""

    above: tuple[LongRates, ...] = ()
    """Other prices for calls with more than so many prompt tokens, shortest first."""

    @field_validator("above")
    @classmethod
    def _in_order(cls, above: tuple[LongRates, ...]) -> tuple[LongRates, ...]:
        if any(one.tokens >= other.tokens for one, other in pairwise(above)):
            raise ValueError("each entry is for longer prompts than the one before it")
        return above

    def cost_usd(self, usage: Usage) -> Decimal:
        """Return what ``usage`` costs, in US dollars, exact."""
        *_, rates = self._reached(usage.prompt)
        with localcontext(prec=_DIGITS):
            dollars = (
                usage.input * rates.input
                + usage.cache_read * rates.cache_read
                + usage.cache_write * rates.cache_write
                + usage.output * rates.output
            )
            return dollars / _MILLION

    def bound_usd(self, prompt: int, output: int) -> Decimal:
        """Return the most that a call of at most so many tokens can cost, in US dollars, exact."""
        dear_input, dear_output = self._dearest(prompt)
        with localcontext(prec=_DIGITS):
            return (prompt * dear_input + output * dear_output) / _MILLION

    def affordable_output(self, prompt: int, usd: Decimal) -> int | None:
        """Return how many output tokens ``usd`` dollars pay for after a prompt of at most so many tokens.

        None means any number, -1 that not even the prompt is paid for.
        """
        dear_input, dear_output = self._dearest(prompt)
        with localcontext(prec=_DIGITS):
            left = usd * _MILLION - prompt * dear_input
            if left < 0:
                return -1
            return None if dear_output == 0 else int(left // dear_output)

    def _reached(self, prompt: int) -> Iterator[Rates]:
        """Yield the rates of all lengths up to that of ``prompt``; the last ones are its own."""
        yield self
        yield from (rates for rates in self.above if prompt > rates.tokens)

    def _dearest(self, prompt: int) -> tuple[Decimal, Decimal]:
        """Return the dearest price of a token in and out, for any prompt up to this length."""
        reached = list(self._reached(prompt))
        return max(map(_dearest_input, reached)), max(rates.output for rates in reached)


def _dearest_input(rates: Rates) -> Decimal:
    return max(rates.input, rates.cache_read, rates.cache_write)


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A price and where it comes from: "config", or the table with its version and the entry that matched.

    Where there is no price, ``source`` says why.
    """

    price: Price | None
    source: str


class Unpriced(LookupError):
    """No price can be told for a model; the message says why, and what would help."""


def price_of(config: ModelConfig) -> Price | None:
    """Return the price of a model, or None where nobody knows it."""
    return price_entry(config).price


def price_entry(config: ModelConfig) -> PriceEntry:
    """Return the price of a model with its source: the config's, or else the table's."""
    if config.price is not None:
        return PriceEntry(config.price, "config")
    if config.price_as is None and config.provider in {"scripted", "replay"}:
        return PriceEntry(
            None, f"the config names none, and no table has one for provider {config.provider!r}"
        )
    from codetaste.llm.price_table import look_up  # noqa: PLC0415 - heavy

    try:
        return look_up(config)
    except Unpriced as why:
        return PriceEntry(None, str(why))


def served_otherwise(config: ModelConfig) -> Callable[[str], str]:
    """Return what says, of the model named in a reply, why the table's price may not be its own; "" if it is.

    Aliases move to newer models, and a gateway may choose another one. Each name is told of once.
    """
    if config.price is not None or config.price_as is not None or (price := price_of(config)) is None:
        return lambda _name: ""
    known = {"", config.model}

    def check(name: str) -> str:
        if name in known or len(known) > _NAMES:
            return ""
        known.add(name)
        entry = price_entry(config.model_copy(update={"model": name}))
        if entry.price == price:
            return ""
        other = "not known" if entry.price is None else "another"
        return (
            f"the provider answered as {name!r}, whose price is {other}, "
            "so that calls may cost more than the budget knows; write price = { … } into [[models]]"
        )

    return check


def written_factor(options: object) -> Decimal:
    """Return what a prompt token costs at most that goes into a provider's cache, times any other.

    Usage has one number for all that was written, so the longest time to live that stands anywhere among the
    options is that of all of it: never too little.
    """
    return max(_WRITTEN.get(ttl, _WRITTEN_FOR_LONG) for ttl in ("5m", *lifetimes(options)))


def lifetimes(options: object) -> Iterator[str]:
    """Yield each time to live in a cache that ``options`` ask for anywhere."""
    if isinstance(options, dict):
        if isinstance(ttl := options.get("ttl"), str):
            yield ttl
        for value in options.values():
            yield from lifetimes(value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from lifetimes(value)


def with_cache_writes(rates: object, factor: Decimal) -> object:
    """Return the table ``rates`` of a config, and those in its ``above``, with ``cache_write`` filled in."""
    if not isinstance(rates, dict):
        return rates
    filled = dict(rates)
    if isinstance(rates.get("above"), list | tuple):
        filled["above"] = [with_cache_writes(longer, factor) for longer in rates["above"]]
    try:
        filled.setdefault("cache_write", Decimal(str(rates.get("input"))) * factor)
    except InvalidOperation:
        return rates  # whoever reads it says what is wrong
    return filled


def budget_problems(config: ModelConfig) -> list[str]:
    """Say why a model cannot run under a budget in US dollars; nothing where it can."""
    from codetaste.llm.bound import billed_apart  # noqa: PLC0415 - it prices with this module

    problems, entry = [], price_entry(config)
    if entry.price is None:
        problems.append(
            f"models[{config.id}].price: not known, so no budget in US dollars can hold: {entry.source}; "
            "write price = { input = …, output = … } (US dollars for a million tokens; 0 where it is free)"
        )
    problems.extend(
        f"models[{config.id}].options.{name}: the provider may bill more than the tokens that we count, so "
        "no budget in US dollars can hold; remove it"
        for name in billed_apart(config.options)
    )
    return problems
