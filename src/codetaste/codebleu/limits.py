"""What a text may have so that its score is computed in bounded time and memory."""

from __future__ import annotations

import re

from codetaste.errors import CodetasteError

MAX_BYTES = 250_000
"""Bytes of one text in UTF-8."""
MAX_OPEN_ANGLES = 1_000
"""``<`` with only names between them: the memory that the parser takes is quadratic in their number (10,000
take a gigabyte); of the other texts that were tried none does that."""
MAX_STEPS = 5_000_000
"""Steps of the data flow of one text: each level of nested loops doubles them."""

_NAMES_AND_ANGLES = re.compile(r"[\w$.?\s<]+")


class CodeTooLarge(CodetasteError):
    """A text exceeds a limit, so that it has no score; the message says which text and which limit."""


def check_size(text: str) -> None:
    """Raise ``CodeTooLarge`` if a text has too many bytes."""
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise CodeTooLarge(f"it has {size:,} bytes, more than {MAX_BYTES:,}")


def check_angles(text: str) -> None:
    """Raise ``CodeTooLarge`` if a text without comments has too many ``<`` for the parser."""
    if any(piece.count("<") > MAX_OPEN_ANGLES for piece in _NAMES_AND_ANGLES.findall(text)):
        raise CodeTooLarge(f"it has more than {MAX_OPEN_ANGLES:,} `<` with only names between them")
