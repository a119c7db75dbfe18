"""The width of text in Computer Modern, LaTeX's own font, and text that breaks where it is too wide.

The fonts of ICML's and ACM's styles are narrower.
"""

from __future__ import annotations

import unicodedata
from functools import cache, lru_cache
from typing import Final

from codetaste.report.render.latex.escape import escape, plain

_ENDS: Final = "…"
_WIDTHS: Final = {
    0.278: "!',.:;[]`il",
    0.306: "fj",
    0.333: "- ",
    0.389: "()t",
    0.392: "r",
    0.394: "s",
    0.444: "cez",
    0.472: "?",
    0.500: '"$*/0123456789\\^ago{}~–_',
    0.528: "kqvxy",
    0.556: "Sbdhnpu",
    0.611: "Z⁺⁻₁",
    0.653: "F",
    0.681: "EPL",
    0.722: "BCTw",
    0.750: "AHNUVXYR",
    0.778: "&+=@KOQ<>±≥≤×DJI|·",
    0.833: "#%m",
    0.917: "MG",
    1.028: "W",
    1.200: "…",
}
"""Widths of cmr10 in em, by characters; some are rounded up."""
_BY_CHAR: Final = {char: width for width, chars in _WIDTHS.items() for char in chars}
_OTHER: Final = 0.8
_BREAK_AFTER: Final = frozenset("/_-.,:;=@)]}")
_ROOM: Final = 7.0
"""Em of what stays together in captions and notes."""


@lru_cache(maxsize=8192)
def text_width(text: str) -> float:
    """Return the width in em of ``text`` as ``escape`` typesets it; never less than it takes."""
    return sum(map(_char_width, plain(text)))


@cache
def _char_width(char: str) -> float:
    return _BY_CHAR.get(unicodedata.normalize("NFD", char)[0], _OTHER)


def shorten_to(text: str, width: float) -> str:
    """Return as much of ``text`` as is at most ``width`` em wide, with an ellipsis if it is cut."""
    if text_width(text) <= width:
        return text
    while text and text_width(text + _ENDS) > width:
        text = text[:-1]
    return text + _ENDS


def escape_breakable(text: str, room: float = _ROOM) -> str:
    """Escape a text of lines of at least ``room`` em: words that are wider may break, as after a slash."""
    return " ".join(_escape_word(word, room) for word in plain(text).split(" "))


def _escape_word(word: str, room: float) -> str:
    if text_width(word) <= room:
        return escape(word)
    parts, used = [""], 0.0
    for char in word:
        used += _char_width(char)
        if parts[-1] and (parts[-1][-1] in _BREAK_AFTER or used > room):
            parts.append("")
            used = _char_width(char)
        parts[-1] += char
    return r"\allowbreak{}".join(map(escape, parts))
