"""The prices of a maintained package, ``genai-prices``, for models whose config names none.

Only the table that came with the package is read: nothing is fetched. The package matches names loosely; here
a match counts only where it surely is the model that was asked for, because a price that is too low breaks a
budget. What the table cannot tell, a person writes down (``price``), or says which entry is meant
(``price_as``). Importing this module brings the whole table: import it where a price is looked up.
"""

from __future__ import annotations

import difflib
import re
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from genai_prices.data import providers
from genai_prices.types import ClauseEquals, ClauseOr, ClauseStartsWith, ModelPrice, StartDateConstraint
from genai_prices.types import TieredPrices as Tiered

from codetaste.llm.pricing import STANDARD, Price, PriceEntry, Unpriced, lifetimes, written_factor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import date

    from genai_prices.types import ModelInfo, Provider

    from codetaste.llm.config import ModelConfig

VERSION = version("genai-prices")
_TABLE = f"genai-prices {VERSION}"

_DATED = re.compile(r"(.+)[-@](?:\d{8}|\d{4}-\d\d-\d\d)")
_NOT_BY_TOKENS = re.compile(r"-search|deep-research|image|audio|realtime|live|sonar")
"""Models that search, draw or speak of their own accord, which their token prices do not cover."""
_ELSEWHERE = re.compile(r"imported from (?!.*verified against)", re.IGNORECASE | re.DOTALL)
"""Said of prices that were taken from somebody who sells the model too."""
_KINDS = re.compile(r"(?:input|output|cache_(?:read|write|write_5m|write_1h))_mtok")
_NEVER_USED = re.compile(
    r"(?:web|storage)_searches_kcount|(?:input|cache)_(?:audio|image|video)(?:_read)?_mtok"
)
"""Prices of what we never send and never ask for."""

_HARMLESS = (
    "betas cache_control diagnostics frequency_penalty function_call functions include logit_bias logprobs "
    "max_tool_calls metadata min_p output_cap output_config output_format parallel_tool_calls "
    "presence_penalty prompt_cache_key prompt_cache_retention reasoning reasoning_effort repetition_penalty "
    "response_format safety_identifier seed send_reasoning stop stop_sequences store stream_options "
    "temperature text thinking tool_choice tools top_k top_logprobs top_p truncation user verbosity"
)
"""Options that change how many tokens there are, and not what one costs."""
_AS_USUAL = frozenset(_HARMLESS.split())


def look_up(config: ModelConfig) -> PriceEntry:
    """Return the table's price of a model, dearest case of what depends on the time.

    Raises:
        Unpriced: there is none that surely is this model's as its options make it.
    """
    if odd := priced_otherwise(config.options):
        raise Unpriced(f"options.{odd[0]} may change it, and the price table knows standard prices only")
    if config.price_as is not None:
        seller, _, model = config.price_as.partition("/")
        sellers = [each for each in providers if each.id == seller]
        if not sellers:
            raise Unpriced(f"{_TABLE} knows no {seller!r}{_near(seller, {each.id for each in providers})}")
    else:
        address, model = config.address, config.model
        sellers = list(_sellers_at(address))
        if not sellers:
            host = urlsplit(address).hostname
            raise Unpriced(f"{_TABLE} does not know the prices at {host}{_as_elsewhere(config)}")
    found, seller = _find(sellers, model)
    if found is None:
        raise Unpriced(f"{_TABLE} has no {model!r} of {seller}{_nearest(sellers, model)}")
    factor = written_factor(config.options) if config.provider == "anthropic" else Decimal(1)
    hour = any(ttl != "5m" for ttl in lifetimes(config.options))
    price = _price(found, seller, factor, hour=hour, today=datetime.now(UTC).date())
    return PriceEntry(price, f"{_TABLE} {seller}/{found.id}")


def priced_otherwise(options: Mapping[str, Any]) -> list[str]:
    """Return the names of options that may make a token cost something else than usual."""
    return sorted(
        name
        for name, value in options.items()
        if name not in _AS_USUAL and not (isinstance(value, str) and value in STANDARD.get(name, ()))
    )


def _sellers_at(address: str) -> Iterator[Provider]:
    """Yield who is known to sell at ``address``.

    An address that the table gives as a pattern stands for regions or for deployments that people name
    themselves: there a model's name does not tell its price.
    """
    for seller in providers:
        known = re.sub(r"\((?:\?:)?/\|\$\)$", "", seller.api_pattern).replace(r"\.", ".")
        if (address.lower() + "/").startswith(known.rstrip("/") + "/"):
            yield seller


def _find(sellers: list[Provider], model: str) -> tuple[ModelInfo | None, str]:
    """Return the entry that surely is ``model``, a name in full before a snapshot's, and its seller's id."""
    for surely in (_named, _snapshot):
        for seller in sellers:
            for entry in seller.models:
                if surely(entry, model.lower()):
                    return entry, seller.id
    return None, " or ".join(seller.id for seller in sellers)


def _named(entry: ModelInfo, name: str) -> bool:
    """Whether ``name`` is the entry's id, or an alias that it spells out."""
    return name in _names(entry)


def _snapshot(entry: ModelInfo, name: str) -> bool:
    """Whether ``name`` is a dated snapshot of the entry's model, and the entry's own rule lets it in."""
    dated = _DATED.fullmatch(name)
    return dated is not None and dated[1] in _names(entry) and entry.is_match(name)


def _names(entry: ModelInfo) -> set[str]:
    """Return the names that an entry spells out."""
    return {entry.id.lower(), *_spelled(entry.match)}


def _spelled(clause: object) -> Iterator[str]:
    match clause:
        case ClauseOr():
            for part in clause.or_:
                yield from _spelled(part)
        case ClauseEquals():
            yield clause.equals.lower()
        case ClauseStartsWith():
            yield clause.starts_with.lower()


def _as_elsewhere(config: ModelConfig) -> str:
    """Suggest the entry of the model's own maker, for one that is reached through somebody else."""
    maker, _, name = config.model.rpartition("/")
    makers = [each for each in providers if each.id == (maker or config.provider.removesuffix("-chat"))]
    found, seller = _find(makers, name)
    return f' (price_as = "{seller}/{found.id}" takes the price of {seller} itself)' if found else ""


def _nearest(sellers: list[Provider], model: str) -> str:
    """Suggest entries: the one whose rule lets the name in, or one with nearly this name."""
    for seller in sellers:
        loose = next((entry for entry in seller.models if entry.is_match(model.lower())), None)
        if loose is not None:
            return f' by this name (if it is that one, write price_as = "{seller.id}/{loose.id}")'
    return _near(model, {name for seller in sellers for entry in seller.models for name in _names(entry)})


def _near(name: str, names: set[str]) -> str:
    near = difflib.get_close_matches(name.lower(), sorted(names), n=1, cutoff=0.5)
    return f" (did you mean {near[0]!r}?)" if near else ""


def _price(entry: ModelInfo, seller: str, factor: Decimal, *, hour: bool, today: date) -> Price:
    """Return an entry's price.

    Raises:
        Unpriced: tokens are not all that is paid for, or it is not the seller's own price.
    """
    tables = [_told(table) for table in _possible(entry, today)]
    said = f"{_TABLE} {seller}/{entry.id}"
    if not all("input_mtok" in told and "output_mtok" in told for told in tables):
        raise Unpriced(f"{said} has no price for tokens")
    extra = sorted({kind for told in tables for kind in told if not _KINDS.fullmatch(kind)})
    if extra or _NOT_BY_TOKENS.search(entry.id.lower()):
        raise Unpriced(f"{said} is not paid by tokens alone")
    if entry.price_comments and _ELSEWHERE.search(entry.price_comments):
        raise Unpriced(f"{said} has a price that was taken from somebody else")
    borders = {
        tier.start
        for told in tables
        for price in told.values()
        if isinstance(price, Tiered)
        for tier in price.tiers
    }
    above = [
        {"tokens": start, **_dearest(tables, start + 1, factor, hour=hour)} for start in sorted(borders - {0})
    ]
    return Price.model_validate({**_dearest(tables, 1, factor, hour=hour), "above": above})


def _possible(entry: ModelInfo, today: date) -> Iterator[ModelPrice]:
    """Yield the prices that may hold at some hour from today on: a run may last, and be resumed."""
    if isinstance(entry.prices, ModelPrice):
        yield entry.prices
        return
    for conditional in reversed(entry.prices):
        yield conditional.prices
        when = conditional.constraint
        # The day itself may begin later where the provider is.
        if when is None or (isinstance(when, StartDateConstraint) and when.start_date < today):
            return


def _told(table: ModelPrice) -> dict[str, Decimal | Tiered]:
    """Return what a table of prices says about what we may use."""
    return {
        kind: price
        for kind, price in vars(table).items()
        if price is not None and not kind.startswith("_") and not _NEVER_USED.fullmatch(kind)
    }


def _dearest(
    tables: list[dict[str, Decimal | Tiered]], prompt: int, factor: Decimal, *, hour: bool
) -> dict[str, Decimal]:
    """Return the rates of a call with ``prompt`` tokens, of each kind the dearest of all ``tables``."""
    rates: dict[str, Decimal] = {}
    for told in tables:
        at = {kind.removesuffix("_mtok"): _at(price, prompt) for kind, price in told.items()}
        written = [at[kind] for kind in ("cache_write", "cache_write_5m") if kind in at]
        if hour or not written:
            written.append(at.get("cache_write_1h" if hour else "cache_write", at["input"] * factor))
        here = {"input": at["input"], "output": at["output"], "cache_write": max(written)}
        here["cache_read"] = at.get("cache_read", at["input"])
        rates = {kind: max(price, rates.get(kind, price)) for kind, price in here.items()}
    return rates


def _at(price: Decimal | Tiered, prompt: int) -> Decimal:
    """Return what a token costs in a call with ``prompt`` tokens: one price for all of them."""
    if isinstance(price, Decimal):
        return price
    return next((tier.price for tier in reversed(price.tiers) if prompt > tier.start), price.base)
