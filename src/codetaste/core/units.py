"""Parse and format quantities of a config: durations (``"45m"``), sizes (``"8GiB"``), dollars (``3.50``).

And moments of records: seconds of the epoch, as ISO 8601 text.
"""

from __future__ import annotations

import math
import re
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from codetaste.core.text import format_value

_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES = {
    "": 1,
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    "B": 1,
}
_MAX_USD, _MAX_DECIMALS = 10**12, 12
"""Largest amount and number of decimals: within these limits sums of amounts are exact."""


def parse_duration(value: Any) -> float:  # noqa: ANN401 - from a config
    """Return seconds: a number is seconds already, text is like "90s", "45m", "1h30m".

    Raises:
        ValueError: ``value`` is not a duration above zero.
    """
    seconds = -1.0
    if isinstance(value, str):
        parts = re.findall(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)", value)
        if parts and "".join(f"{number}{unit}" for number, unit in parts) == value.replace(" ", ""):
            seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    elif isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        with suppress(OverflowError):
            seconds = float(value)
    if not 0 < seconds < float("inf"):
        text = format_value(value)
        raise ValueError(f'{text} is not a duration: write for example "90s", "45m" or "1h30m"')
    return seconds


def parse_size(value: Any) -> int:  # noqa: ANN401 - from a config
    """Return bytes: a whole number is bytes already, text is like "512MiB" or "8GiB".

    Raises:
        ValueError: ``value`` is not a size above zero.
    """
    size = -1
    if isinstance(value, str):
        match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?i?B|)", value.strip())
        if match is not None and match[2] in _BYTES:
            size = int(Decimal(match[1]) * _BYTES[match[2]])
    elif isinstance(value, int) and not isinstance(value, bool):
        size = value
    if size <= 0:
        raise ValueError(f'{format_value(value)} is not a size: write for example "512MiB" or "8GiB"')
    return size


def parse_usd(value: Any) -> Decimal:  # noqa: ANN401 - from a config
    """Return US dollars, exact: 0.1 is one tenth.

    Raises:
        ValueError: ``value`` is not an amount of zero or more.
    """
    try:
        # Decimal alone also takes "1_0" and digits of other scripts.
        plain = not isinstance(value, bool) and re.fullmatch(r"[0-9.]+([eE][+-]?[0-9]{1,3})?", str(value))
        amount = Decimal(str(value)) if plain else Decimal(-1)
    except InvalidOperation:
        amount = Decimal(-1)
    if not amount.is_finite() or not 0 <= amount <= _MAX_USD or amount != round(amount, _MAX_DECIMALS):
        raise ValueError(f"{format_value(value)} is not an amount of US dollars")
    return amount


def format_duration(seconds: float) -> str:
    """Format a duration: "8s", "4m05s", "2h03m"."""
    whole = max(0, round(seconds))
    if whole < 60:  # noqa: PLR2004 - a minute
        return f"{whole}s"
    minutes, second = divmod(whole, 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}h{minute:02d}m" if hours else f"{minute}m{second:02d}s"


def usd_decimals(amount: Decimal | float) -> int:
    """Return how many decimals an amount of dollars is shown with.

    To the cent; below 10 cents four decimals, or as many as two digits that are not leading zeros need.
    """
    size = abs(float(amount))
    if not 0 < size < 0.1:  # noqa: PLR2004 - 10 cents
        return 2
    return min(max(4, 1 - math.floor(math.log10(size))), _MAX_DECIMALS)


def format_usd(amount: Decimal | float) -> str:
    """Format an amount of dollars with ``usd_decimals``."""
    return f"${amount:.{usd_decimals(amount)}f}"


def format_exact_usd(amount: Decimal) -> str:
    """Format an amount of dollars exactly; equal amounts give equal text."""
    return format(amount.normalize(), "f")


def format_size(size: int) -> str:
    """Format a size: "812 B", "1.2 KiB", "8.0 GiB"."""
    amount = float(size)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:  # noqa: PLR2004 - the next unit
            return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def format_iso_time(at: float) -> str:
    """Return seconds of the epoch as an ISO time in UTC, exact to a microsecond."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="microseconds")


def parse_iso_time(value: object) -> float | None:
    """Return an ISO time as seconds of the epoch; None for anything else."""
    try:
        return datetime.fromisoformat(value).timestamp() if isinstance(value, str) else None
    except (ValueError, OverflowError):
        return None


def _number_or_text(number: str) -> WithJsonSchema:
    """Return the JSON schema of a quantity in a config: a number, or text with a unit."""
    return WithJsonSchema({"anyOf": [{"type": number, "minimum": 0}, {"type": "string"}]}, mode="validation")


Seconds = Annotated[float, BeforeValidator(parse_duration), _number_or_text("number")]
Bytes = Annotated[int, BeforeValidator(parse_size), _number_or_text("integer")]
Usd = Annotated[
    Decimal,
    BeforeValidator(parse_usd),
    PlainSerializer(str, when_used="json"),
    _number_or_text("number"),
]
