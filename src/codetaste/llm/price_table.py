"""Prices from the maintained package ``genai-prices``, for models whose config has no price.

Only the table installed with the package is read; nothing is fetched. The package matches names loosely; here
a match counts only if it certainly is the requested model, because a price that is too low breaks a budget.
For other models the user sets ``price``, or names the table's entry with ``price_as``. The package is large
and is imported when the first price is looked up in it.
"""

from __future__ import annotations

import difflib
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from functools import cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from codetaste.llm.price import ROUTING_OPTIONS, STANDARD_OPTIONS, Price, cache_ttls, cache_write_factor
from codetaste.llm.wire.allow_lists import ALLOW_LISTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import date

    from genai_prices.types import ModelInfo, ModelPrice, Provider
    from genai_prices.types import TieredPrices as Tiered

    from codetaste.llm.config import ModelConfig
    from codetaste.llm.wire.common.allow_list import Findings


_DATED = re.compile(r"(.+)[-@](?:\d{8}|\d{4}-\d\d-\d\d)")

_NOT_BY_TOKENS = re.compile(r"-search|deep-research|image|audio|realtime|live|sonar")
"""Models that search, draw or speak by themselves; their token prices do not cover that."""

_OTHER_SELLER = re.compile(r"imported from (?!.*verified against)", re.IGNORECASE | re.DOTALL)
"""Comment on prices that were taken from another seller of the model."""

_KINDS = re.compile(r"(?:input|output|cache_(?:read|write|write_5m|write_1h))_mtok")

_NEVER_USED = re.compile(
    r"(?:web|storage)_searches_kcount|(?:input|cache)_(?:audio|image|video)(?:_read)?_mtok"
)
"""Prices of features that are never sent or requested."""

_ADDRESSES = {
    "google": r"https://generativelanguage\.googleapis\.com",
    "minimax": r"https://api\.minimax\.io",
    "moonshotai": r"https://api\.moonshot\.ai",
    "openrouter": r"(?!)",
}
"""Addresses where prices certainly apply, if they are fewer than the table matches: others have prices
of a region or in another currency, and OpenRouter passes requests to sellers with various prices."""

_MAX_NAMES = 20
"""Model names to report before a provider that uses a new name in each reply is ignored."""


def look_up_price(config: ModelConfig) -> PriceEntry:
    """Return the table's price of a model; where it depends on the time, the highest.

    Raises:
        UnknownPrice: the table has no price that certainly applies to this model with these options.
    """
    odd = sorted(
        name
        for name, value in config.options.items()
        if name in ROUTING_OPTIONS or (name in STANDARD_OPTIONS and str(value) not in STANDARD_OPTIONS[name])
    )
    checked = _check_options(config)
    odd.extend(() if checked is None else checked.keys)
    if odd:
        raise UnknownPrice(f"options.{odd[0]} may change it, and the price table has standard prices only")
    found, seller = _entry_of(config)
    factor = cache_write_factor(config.options) if config.provider == "anthropic" else Decimal(1)
    hour = any(ttl != "5m" for ttl in cache_ttls(config.options))
    try:
        price = _price(found, seller, factor, hour=hour)
    except UnknownPrice as why:
        raise UnknownPrice(f"{why}{_suggest_seller(config)}") from None
    return PriceEntry(price, f"{_table_name()} {seller}/{found.id}")


def context_window_of(config: ModelConfig) -> int | None:
    """Return the context window of a model in tokens: the config's, or else the table's; None if unknown."""
    if config.context_window is not None or (config.price_as is None and config.protocol is None):
        return config.context_window
    try:
        return _entry_of(config)[0].context_window
    except UnknownPrice:
        return None


def _entry_of(config: ModelConfig) -> tuple[ModelInfo, str]:
    """Return the table's entry of a model, and its seller's id.

    Raises:
        UnknownPrice: the table has no entry that certainly is this model.
    """
    if config.price_as is not None:
        seller, _, model = config.price_as.partition("/")
        sellers = [each for each in _known_sellers() if each.id == seller]
        if not sellers:
            suggestion = _suggest_name(seller, {each.id for each in _known_sellers()})
            raise UnknownPrice(f"{_table_name()} knows no {seller!r}{suggestion}")
    else:
        address, model = config.address, config.model
        sellers = list(_sellers_at(address))
        if not sellers:
            host = urlsplit(address).hostname
            raise UnknownPrice(f"{_table_name()} has no certain prices at {host}{_suggest_seller(config)}")
    found, seller = _find(sellers, model)
    if found is None:
        suggestion = _suggest_entry(sellers, model) or _suggest_seller(config)
        suggestion = suggestion or _suggest_name(
            model, {name for each in sellers for entry in each.models for name in _names(entry)}
        )
        raise UnknownPrice(f"{_table_name()} has no {model!r} of {seller}{suggestion}")
    return found, seller


@cache
def _table_name() -> str:
    return f"genai-prices {version('genai-prices')}"


def _known_sellers() -> list[Provider]:
    from genai_prices.data import providers  # noqa: PLC0415 - large

    return providers


def _sellers_at(address: str) -> Iterator[Provider]:
    """Yield the sellers that are known at ``address``.

    Patterns with wildcards are skipped: they cover regions or user-named deployments, where the name of a
    model does not determine its price.
    """
    for seller in _known_sellers():
        known = _ADDRESSES.get(seller.id) or re.sub(r"\((?:\?:)?/\|\$\)$", "", seller.api_pattern)
        if not re.search(r"[*+]", known) and re.match(f"(?:{known})(?:/|$)", address.lower()):
            yield seller


def _find(sellers: list[Provider], model: str) -> tuple[ModelInfo | None, str]:
    """Return the entry that certainly is ``model`` and its seller's id; exact names before snapshots.

    A dated snapshot of an entry's model is certain if the entry's own rule matches it too.
    """
    name = model.lower()
    dated = _DATED.fullmatch(name)
    for wanted in (name, dated[1]) if dated else (name,):
        for seller in sellers:
            for entry in seller.models:
                if wanted in _names(entry) and (wanted == name or entry.is_match(name)):
                    return entry, seller.id
    return None, " or ".join(seller.id for seller in sellers)


def _names(entry: ModelInfo) -> set[str]:
    return {entry.id.lower(), *_literal_names(entry.match)}


def _literal_names(clause: object) -> Iterator[str]:
    from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith  # noqa: PLC0415 - large

    match clause:
        case ClauseOr():
            for part in clause.or_:
                yield from _literal_names(part)
        case ClauseEquals():
            yield clause.equals.lower()
        case ClauseStartsWith():
            yield clause.starts_with.lower()


def _suggest_seller(config: ModelConfig) -> str:
    """Suggest an entry with a price: of the seller at this address, of the maker, or the dearest one."""
    maker, _, name = config.model.lower().rpartition("/")
    dated = _DATED.fullmatch(name)
    wanted = {name, dated[1]} if dated else {name}
    found: list[tuple[bool, bool, Decimal, str]] = []
    for seller in _known_sellers():
        here = re.match(seller.api_pattern, config.address) is not None
        own = seller.model_match is not None and seller.model_match.is_match(name)
        made = own or seller.id in (maker, config.provider.removesuffix("-chat"))
        for entry in seller.models:
            if wanted.intersection(each.rpartition("/")[2] for each in _names(entry)):
                with suppress(UnknownPrice):
                    price = _price(entry, seller.id)
                    found.append((here, made, price.input + price.output, f"{seller.id}/{entry.id}"))
    if not found:
        return ""
    best = max(found)[-1]
    return f' (price_as = "{best}" takes the price of {best.partition("/")[0]})'


def _suggest_entry(sellers: list[Provider], model: str) -> str:
    """Suggest an entry with a price whose rule matches the name."""
    for seller in sellers:
        loose = next((entry for entry in seller.models if entry.is_match(model.lower())), None)
        if loose is not None:
            with suppress(UnknownPrice):
                _price(loose, seller.id)
                return f' by this name (if it is that one, write price_as = "{seller.id}/{loose.id}")'
    return ""


def _suggest_name(name: str, names: set[str]) -> str:
    near = difflib.get_close_matches(name.lower(), sorted(names), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _price(entry: ModelInfo, seller: str, factor: Decimal = Decimal(1), *, hour: bool = False) -> Price:
    """Return an entry's price.

    Raises:
        UnknownPrice: the model is not paid by tokens alone, or the price is not the seller's own.
    """
    tables: list[dict[str, Decimal | Tiered]] = [
        {
            kind: price
            for kind, price in vars(table).items()
            if price is not None and not kind.startswith("_") and not _NEVER_USED.fullmatch(kind)
        }
        for table in _applicable(entry, datetime.now(UTC).date())
    ]
    name = f"{_table_name()} {seller}/{entry.id}"
    if not all("input_mtok" in prices and "output_mtok" in prices for prices in tables):
        raise UnknownPrice(f"{name} has no price for tokens")
    extra = sorted({kind for prices in tables for kind in prices if not _KINDS.fullmatch(kind)})
    if extra or _NOT_BY_TOKENS.search(entry.id.lower()):
        raise UnknownPrice(f"{name} is not paid by tokens alone")
    if entry.price_comments and _OTHER_SELLER.search(entry.price_comments):
        raise UnknownPrice(f"{name} has a price that was taken from another seller")
    tiered = [price for prices in tables for price in prices.values() if not isinstance(price, Decimal)]
    borders = sorted({tier.start for price in tiered for tier in price.tiers} - {0})
    above = [{"tokens": start, **_highest_rates(tables, start + 1, factor, hour=hour)} for start in borders]
    return Price.model_validate({**_highest_rates(tables, 1, factor, hour=hour), "above": above})


def _applicable(entry: ModelInfo, today: date) -> Iterator[ModelPrice]:
    """Yield the prices that may apply from today on; a run may take days and be resumed later."""
    from genai_prices.types import ModelPrice, StartDateConstraint  # noqa: PLC0415 - large

    if isinstance(entry.prices, ModelPrice):
        yield entry.prices
        return
    for conditional in reversed(entry.prices):
        yield conditional.prices
        when = conditional.constraint
        # The start date may begin later in the provider's time zone.
        if when is None or (isinstance(when, StartDateConstraint) and when.start_date < today):
            return


def _highest_rates(
    tables: list[dict[str, Decimal | Tiered]], prompt: int, factor: Decimal, *, hour: bool
) -> dict[str, Decimal]:
    """Return the highest rates of all ``tables`` for a call with ``prompt`` tokens, by kind."""
    rates: dict[str, Decimal] = {}
    for prices in tables:
        at = {kind.removesuffix("_mtok"): _at(price, prompt) for kind, price in prices.items()}
        written = [at[kind] for kind in ("cache_write", "cache_write_5m") if kind in at]
        if hour or not written:
            written.append(at.get("cache_write_1h" if hour else "cache_write", at["input"] * factor))
        here = {"input": at["input"], "output": at["output"], "cache_write": max(written)}
        here["cache_read"] = at.get("cache_read", at["input"])
        rates = {kind: max(price, rates.get(kind, price)) for kind, price in here.items()}
    return rates


def _at(price: Decimal | Tiered, prompt: int) -> Decimal:
    """Return the price of a token in a call with ``prompt`` tokens; one price applies to all of them."""
    if not isinstance(price, Decimal):
        price = next((tier.price for tier in reversed(price.tiers) if prompt > tier.start), price.base)
    rounded = price.quantize(Decimal("1e-9"), ROUND_CEILING)  # some were divided by an exchange rate
    return price if price == rounded else rounded


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """A price and its source: "config", or the table with its version and the entry that matched.

    Without a price, ``source`` is the reason.
    """

    price: Price | None
    source: str


class UnknownPrice(LookupError):
    """The price of a model cannot be determined; the message gives the reason and the remedy."""


def price_of(config: ModelConfig) -> Price | None:
    """Return the price of a model, or None if it is unknown."""
    return price_entry(config).price


def price_entry(config: ModelConfig) -> PriceEntry:
    """Return the price of a model and its source: the config, or else the price table.

    What the config opens in the allow list, and its options use, is part of the price.
    """
    entry = _token_price(config)
    found = _check_options(config)
    if entry.price is None or found is None:
        return entry
    return replace(entry, price=entry.price.with_extra(found.extra_usd))


def _check_options(config: ModelConfig) -> Findings | None:
    """Return what of a model's options is not in the allow list; None for a model that is not remote."""
    if config.protocol is None:
        return None
    return ALLOW_LISTS[config.protocol.name].check_options(config.options, config.allow)


def _token_price(config: ModelConfig) -> PriceEntry:
    if config.price is not None:
        return PriceEntry(config.price, "config")
    if config.price_as is None and config.protocol is None:
        reason = f"the config names none, and no table has one for provider {config.provider!r}"
        return PriceEntry(None, reason)
    try:
        return look_up_price(config)
    except UnknownPrice as why:
        return PriceEntry(None, str(why))


def price_difference(config: ModelConfig) -> str:
    """Return in one line how a config's price differs from the table's for this model, "" if it does not.

    At an address without known prices it is compared with that at the protocol's own address.
    """
    if config.protocol is None or (config.price is None and config.price_as is None):
        return ""
    known, without = None, {"price": None, "price_as": None}
    for address in (config.base_url, None):
        with suppress(UnknownPrice):
            known = known or look_up_price(config.model_copy(update={**without, "base_url": address}))
    mine, key = price_of(config), "price" if config.price_as is None else "price_as"
    different = mine and known and known.price and "; ".join(mine.differences(known.price))
    if not different or known is None:
        return ""
    return f"models[{config.id}].{key}: {different}, as {known.source} has it; budgets count what {key} says"


def price_mismatch_checker(config: ModelConfig) -> Callable[[str], str]:
    """Return a function that checks the model named in a reply against the price in use.

    It returns why the table's price may not apply to that model, "" if it does: an alias may point to a newer
    model, and a gateway may choose another one. Each name is reported once.
    """
    if config.price is not None or config.price_as is not None or (price := price_of(config)) is None:
        return lambda _name: ""
    known = {"", config.model}

    def check(name: str) -> str:
        if name in known or len(known) > _MAX_NAMES:
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


def budget_problems(config: ModelConfig) -> list[str]:
    """Return the reasons why a model cannot run under a budget in US dollars, none if it can."""
    problems, entry = [], price_entry(config)
    if entry.price is None:
        problems.append(
            f"models[{config.id}].price: not known, so no budget in US dollars can hold: {entry.source}; "
            "write price = { input = …, output = … } (US dollars for a million tokens; 0 where it is free)"
        )
    if (found := _check_options(config)) is not None and found.refusals:
        problems.append(f"models[{config.id}].options.{found.describe()}")
    return problems


def agent_option_problems(config: ModelConfig, options: Mapping[str, Any]) -> list[str]:
    """Return why an agent's ``options`` for the requests to its model cannot have a budget in US dollars."""
    if config.protocol is None:
        return []
    # A price belongs to the model: what it opens stands in the model's own options.
    found = ALLOW_LISTS[config.protocol.name].check_options(options, {})
    return [f"options.{found.describe()}"] if found.refusals else []
