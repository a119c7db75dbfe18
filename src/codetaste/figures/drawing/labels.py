"""Labels of untrusted names: printable, short, unique, and with glyphs that the font has."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from functools import cache
from itertools import count, takewhile
from typing import TYPE_CHECKING, Final

from matplotlib.ft2font import FT2Font

from codetaste.core.text import printable
from codetaste.figures.drawing.style import FONT_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_CHARS: Final = 28
_MAX_READ: Final = 400


def make_labels(names: Iterable[str], limit: int = MAX_CHARS) -> dict[str, str]:
    """Return a label for each name, no two of them equal.

    Long ones are shortened in the middle; those that would then be equal are shortened around the first
    character in which they differ.
    """
    drawable = {name: glyphs(name) for name in names}
    alike: defaultdict[str, set[str]] = defaultdict(set)
    for text in drawable.values():
        alike[shorten_middle(text, limit)].add(text)
    labels: dict[str, str] = {}
    used: set[str] = set()
    for name, text in drawable.items():
        short = shorten_middle(text, limit)
        if len(alike[short]) > 1:
            equal = takewhile(lambda chars: len({*chars}) == 1, zip(*alike[short], strict=False))
            short = _shorten_around(text, len([*equal]), limit)
        short = short or "(no name)"
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


def _shorten_around(text: str, at: int, limit: int) -> str:
    """Return the beginning of a long text, and what is from ``at`` on, in at most ``limit`` characters."""
    head = limit // 3
    room = limit - head - 1
    start = min(max(at - 2, head), len(text) - room)
    tail = text[start:] if start + room >= len(text) else f"{text[start : start + room - 1]}…"
    return f"{text[:head]}…{tail}"


@cache
def _font_characters() -> frozenset[int]:
    return frozenset(FT2Font(str(FONT_FILE)).get_charmap())
