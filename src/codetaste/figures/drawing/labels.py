"""Labels of untrusted names: printable, short, unique, and with glyphs that the font has."""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Final

from matplotlib.ft2font import FT2Font

from codetaste.core.text import printable
from codetaste.figures.drawing.style import FONT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS: Final = 28
_MAX_READ: Final = 400


def make_labels(names: Iterable[str], limit: int = MAX_CHARS) -> dict[str, str]:
    """Return a label for each name, no two of them equal; long ones are shortened in the middle."""
    labels: dict[str, str] = {}
    used: set[str] = set()
    for name in dict.fromkeys(names):
        short = shorten_middle(glyphs(name), limit) or "(no name)"
        label = next(each for n in count(1) if (each := short if n == 1 else f"{short} #{n}") not in used)
        labels[name] = label
        used.add(label)
    return labels


def glyphs(text: str) -> str:
    """Return text in one printable line; a character that the font lacks is its code point: ``[U+6F22]``."""
    flat = unicodedata.normalize("NFC", printable(text, _MAX_READ))
    return "".join(char if ord(char) in _font_characters() else f"[U+{ord(char):04X}]" for char in flat)


def shorten_middle(text: str, limit: int) -> str:
    """Return at most ``limit`` characters: ids often differ in their ends."""
    if len(text) <= limit:
        return text
    end = (limit - 1) // 2
    return f"{text[: limit - 1 - end]}…{text[len(text) - end :]}"


@cache
def _font_characters() -> frozenset[int]:
    return frozenset(FT2Font(str(FONT_FILE)).get_charmap())
